import os
import time

from proton import ConnectionException, Message, SSLException
from proton.reactor import Transaction
from proton.utils import LinkDetached

import client
from client import DEADLINE, InSession, RECEIVER_SECOND, connect, numbered, plain, unique_name
from places import ADDRESS, Guarded, KEYS, QUEUE_KEY, ROOT, Tokens, authority, signed, trusting
from test_transactions import Outcomes

SERVICE = "sb://localhost"


def setUpModule():
    global guarded
    guarded = Guarded()


def tearDownModule():
    guarded.stop()


class Doors(client.TestCase):
    def opened(self, make, *arguments, **options):
        connection = make(*arguments, **options)
        self.addCleanup(connection.close)
        return connection

    def round_trip(self, connection, queue: str, sizes=(1,)) -> None:
        """Sends messages and takes them back."""
        sender, receiver = self.sender_of(connection, queue), self.receiver_of(connection, queue)
        for size in sizes:
            body = bytes(number % 251 for number in range(size))
            sender.send(Message(body=body))
            message, delivery = self.receive_one(receiver)
            self.assertEqual(plain(message.body), body)
            delivery.update(delivery.ACCEPTED)
            connection.wait(lambda: delivery.settled, msg="settlement")
            delivery.settle()

    @staticmethod
    def sender_of(connection, address: str):
        return connection.create_sender(address, name=unique_name())

    @staticmethod
    def receiver_of(connection, address: str, options=RECEIVER_SECOND):
        return connection.create_receiver(address, name=unique_name(), options=options)

    def unauthorized(self, create, *arguments) -> None:
        with self.assertRaises(LinkDetached) as raised:
            create(*arguments)
        self.assertEqual(raised.exception.condition, "amqp:unauthorized-access")

    def denied(self, connection, address: str) -> None:
        self.unauthorized(self.sender_of, connection, address)
        self.unauthorized(self.receiver_of, connection, address)

    def not_connected(self, reason: str, make, *arguments, **options) -> None:
        with self.assertRaisesRegex((ConnectionException, SSLException), reason):
            self.opened(make, *arguments, **options)

    def test_s261_amqps_is_on_every_port(self):
        domain = trusting(authority())
        for port in (os.environ["JITNEY_AMQP_PORT"], os.environ["JITNEY_HTTP_PORT"]):
            connection = self.opened(connect, url=f"amqps://localhost:{port}", ssl_domain=domain)
            self.round_trip(connection, "s05", sizes=(1, 200 * 1024))

    def test_s261_amqps_is_on_its_own_port(self):
        # There is no port in the address. Proton does not find addresses in a certificate.
        connection = self.opened(
            connect, url=f"amqps://{ADDRESS}", ssl_domain=guarded.trust(), sni="localhost", allowed_mechs="PLAIN", user=ROOT,
            password=KEYS[ROOT],
        )
        self.round_trip(connection, "s264", sizes=(1, 200 * 1024))

    def test_s262_who_does_not_trust_the_authority_does_not_connect(self):
        url = f"amqps://localhost:{os.environ['JITNEY_AMQP_PORT']}"
        # The other broker's authority, and another name than in the certificate.
        self.not_connected("certificate verify failed", connect, url=url, ssl_domain=guarded.trust())
        self.not_connected("certificate verify failed", connect, url=url, ssl_domain=trusting(authority()), sni="example.com")

    def test_s264_a_wrong_key_and_an_unknown_name_give_nothing(self):
        connection = self.opened(guarded.nameless)
        tokens, audience = Tokens(connection), f"{SERVICE}/s264"
        self.assertEqual(tokens.put(audience, signed(audience, ROOT, "wrong")), 401)
        self.assertEqual(tokens.put(audience, signed(audience, "no-such-name", KEYS[ROOT])), 401)
        self.denied(connection, "s264")
        self.assertEqual(tokens.put(audience, signed(audience, ROOT)), 202)
        self.round_trip(connection, "s264")

    def test_s265_a_token_is_good_for_its_resource_only(self):
        connection = self.opened(guarded.nameless)
        tokens, audience = Tokens(connection), f"{SERVICE}/s265"
        self.assertEqual(tokens.put(f"{SERVICE}/s265b", signed(audience, ROOT)), 401)
        self.assertEqual(tokens.put(audience, signed(audience, ROOT)), 202)
        self.round_trip(connection, "s265")
        self.denied(connection, "s265b")

    def test_s291_plain_is_enough_without_cbs(self):
        connection = self.opened(guarded.plain, ROOT)
        self.round_trip(connection, "s291", sizes=(1, 200 * 1024))
        # What clients like those of JMS do: sessions, dead letters, transactions.
        session = Message(body="in a session")
        session.group_id = "x"
        self.sender_of(connection, "s291s").send(session)
        message, _ = self.receive_one(self.receiver_of(connection, "s291s", InSession("x")))
        self.assertEqual(message.body, "in a session")
        self.receiver_of(connection, "s291/$DeadLetterQueue")
        outcomes = Outcomes()
        transaction = connection.container.declare_transaction(connection.conn, outcomes)
        connection.wait(lambda: outcomes.said, msg="declare")
        sender = self.sender_of(connection, "s291t")
        for message in numbered(2):
            delivery = transaction.send(sender.link, message)
            connection.wait(lambda: delivery.remote_state, msg="transactional send")
        Transaction.commit(transaction)
        connection.wait(lambda: len(outcomes.said) == 2, msg="commit")
        self.assertEqual(outcomes.said, ["declared", "committed"])
        received = self.receive(self.receiver_of(connection, "s291t"), 2)
        self.assertEqual([message.body for message, _ in received], [1, 2])

    def test_s291_plain_gives_what_its_rule_says(self):
        listener, speaker = self.opened(guarded.plain, "listener"), self.opened(guarded.plain, "speaker")
        self.sender_of(speaker, "s291b").send(Message(body="heard"))
        self.unauthorized(self.receiver_of, speaker, "s291b")
        self.unauthorized(self.sender_of, listener, "s291b")
        message, _ = self.receive_one(self.receiver_of(listener, "s291b"))
        self.assertEqual(message.body, "heard")

    def test_s291_an_entitys_key_is_good_there_only(self):
        own = self.opened(guarded.plain, "own", QUEUE_KEY)
        self.round_trip(own, "s291")
        for address in ("s291b", "no-such-queue"):
            self.denied(own, address)

    def test_s291_plain_with_a_wrong_key_does_not_connect(self):
        for name, key in ((ROOT, "wrong"), (ROOT, KEYS["listener"]), ("no-such-name", KEYS[ROOT])):
            self.not_connected("Authentication failed|unauthorized", guarded.plain, name, key)

    def test_s292_external_is_the_rule_of_the_certificates_name(self):
        sender = self.sender_of(self.opened(guarded.plain, "speaker"), "s292")
        for url in (f"amqps://localhost:{guarded.port}", f"amqps://{ADDRESS}"):
            sender.send(Message(body=url))
            listener = self.opened(
                connect, url=url, ssl_domain=guarded.trust("listener"), sni="localhost", allowed_mechs="EXTERNAL",
            )
            message, delivery = self.receive_one(self.receiver_of(listener, "s292"))
            self.assertEqual(message.body, url)
            delivery.update(delivery.ACCEPTED)
            listener.wait(lambda: delivery.settled, msg="settlement")
            self.unauthorized(self.sender_of, listener, "s292")

    def test_s292_external_with_another_certificate_or_none_does_not_connect(self):
        url = f"amqps://localhost:{guarded.port}"
        for client_name in ("nobody", None):
            self.not_connected(
                "Authentication failed|unauthorized|mechanism", connect, url=url, ssl_domain=guarded.trust(client_name),
                allowed_mechs="EXTERNAL",
            )

    def test_s293_anonymous_sees_cbs_and_nothing_else(self):
        connection = self.opened(guarded.nameless)
        for address in ("s293", "s293/$management", "no-such-queue"):
            self.denied(connection, address)
        self.assertEqual(Tokens(connection).put(f"{SERVICE}/s293", signed(f"{SERVICE}/s293", "speaker")), 202)
        self.sender_of(connection, "s293").send(Message(body=1))
        self.unauthorized(self.receiver_of, connection, "s293")

    def test_s295_a_link_ends_with_its_token_and_others_stay(self):
        connection = self.opened(guarded.nameless)
        tokens, expiry = Tokens(connection), int(time.time()) + 3
        self.assertEqual(tokens.put(f"{SERVICE}/s295", signed(f"{SERVICE}/s295", ROOT, expiry=expiry)), 202)
        self.assertEqual(tokens.put(f"{SERVICE}/s295b", signed(f"{SERVICE}/s295b", ROOT)), 202)
        ends, stays = self.receiver_of(connection, "s295"), self.sender_of(connection, "s295b")
        with self.assertRaises(LinkDetached) as raised:
            ends.receive(DEADLINE)
        self.assertEqual(raised.exception.condition, "amqp:unauthorized-access")
        self.assertIn("ExpiredToken", str(raised.exception))
        self.assertTrue(0 <= time.time() - expiry < 1.5, time.time() - expiry)
        stays.send(Message(body=1))
