from proton import Message
from proton.utils import LinkDetached

from client import TestCase, connect, number, numbered, unique_name
from endpoints import ROOT, Tokens, signed


class Connecting(TestCase):
    def test_s01_a_message_is_sent_received_and_accepted(self):
        self.send("s01", *numbered(1))
        receiver = self.receiver("s01")
        message, delivery = self.receive_one(receiver)
        self.assertEqual(message.body, 1)
        self.settle(delivery, delivery.ACCEPTED)
        self.assertEqual(self.available(receiver), [])

    def test_s02_an_unknown_queue_is_not_found(self):
        for create in (self.connection.create_sender, self.connection.create_receiver):
            with self.assertRaises(LinkDetached) as raised:
                create("no-such-queue")
            self.assertEqual(raised.exception.condition, "amqp:not-found")
            self.assertRegex(str(raised.exception), "The messaging entity .* could not be found")

    def test_s04_many_links_share_a_connection(self):
        senders = [self.sender(address) for address in ["s04", "s04b"] * 10]
        receivers = {address: self.receiver(address) for address in ("s04", "s04b")}
        senders[0].close()
        for sender in senders[1:]:
            sender.send(numbered(1)[0])
        self.assertEqual(len(self.receive(receivers["s04"], 9)), 9)
        self.assertEqual(len(self.receive(receivers["s04b"], 10)), 10)

    def test_s05_plain_is_enough_to_send_and_receive(self):
        connection = connect(
            allowed_mechs="PLAIN", allow_insecure_mechs=True, user="RootManageSharedAccessKey", password="SAS_KEY_VALUE"
        )
        self.addCleanup(connection.close)
        connection.create_sender("s05").send(numbered(1)[0])
        self.assertEqual(connection.create_receiver("s05").receive().body, 1)

    def test_s06_a_token_is_answered(self):
        tokens = Tokens(self.connection)
        resource = "sb://localhost/s06"
        self.assertEqual(tokens.put(resource, signed(resource, ROOT, "SAS_KEY_VALUE")), 202)
        self.assertEqual(tokens.put(resource, "no token"), 401)
        self.send("s06", *numbered(1))

    def test_s251_a_connection_is_in_the_namespace_that_it_names(self):
        other = self.other(virtual_host="other.example")
        for connection, body in ((self.connection, "first"), (other, "other")):
            connection.create_sender("s251", name=unique_name()).send(Message(body=body))
            message, _ = self.receive_one(self.receiver("s251", connection=connection))
            self.assertEqual((message.body, number(message)), (body, 1))
        self.receiver("s251only", connection=other)
        self.refused(self.receiver, "s251only", condition="amqp:not-found")
