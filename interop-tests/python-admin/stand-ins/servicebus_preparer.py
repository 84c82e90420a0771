"""In the place of the file of this name in the tests: theirs makes namespaces by Azure's resource manager."""

# Names of entities are compared with addresses that end so: here a namespace is an address.
SERVICEBUS_ENDPOINT_SUFFIX = ""
