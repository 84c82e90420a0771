"""Adds an authority to the ones that this interpreter trusts, as an administrator would to a machine's: see ../README.md.

The AMQP half of the SDK trusts the bundle of `certifi`, for which there is no setting; `requests` and OpenSSL have one.
"""

import os

import certifi

certifi.where = lambda: os.environ["SSL_CERT_FILE"]
