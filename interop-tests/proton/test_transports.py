import os
import time

from proton import ConnectionException, Endpoint, Message, SSLException, int32
from proton.reactor import Transaction
from proton.utils import LinkDetached

import client
from client import DEADLINE, InSession, RECEIVER_SECOND, connect, numbered, plain, unique_name
from management import Management, longs
from endpoints import ADDRESS, ELSEWHERE, Secured, KEYS, QUEUE_KEY, ROOT, Tokens, authority, signed, trusting
from test_transactions import Outcomes

SERVICE = "sb://localhost"


def setUpModule():
    global secured
    secured = Secured()


class Transports(client.TestCase):
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
            self.round_trip(connection, "s261g", sizes=(1, 200 * 1024))

    def test_s261_amqps_is_on_its_own_port(self):
        # There is no port in the address. Proton does not find addresses in a certificate.
        connection = self.opened(
            connect, url=f"amqps://{ADDRESS}", ssl_domain=secured.trust(), sni="localhost", allowed_mechs="PLAIN", user=ROOT,
            password=KEYS[ROOT],
        )
        self.round_trip(connection, "s264", sizes=(1, 200 * 1024))

    def test_s262_who_does_not_trust_the_authority_does_not_connect(self):
        url = f"amqps://localhost:{os.environ['JITNEY_AMQP_PORT']}"
        # The other broker's authority, and another name than in the certificate.
        self.not_connected("certificate verify failed", connect, url=url, ssl_domain=secured.trust())
        self.not_connected("certificate verify failed", connect, url=url, ssl_domain=trusting(authority()), sni="example.com")

    def test_s264_a_wrong_key_and_an_unknown_name_give_nothing(self):
        connection = self.opened(secured.nameless)
        tokens, audience = Tokens(connection), f"{SERVICE}/s264"
        self.assertEqual(tokens.put(audience, signed(audience, ROOT, "wrong")), 401)
        self.assertEqual(tokens.put(audience, signed(audience, "no-such-name", KEYS[ROOT])), 401)
        self.denied(connection, "s264")
        self.assertEqual(tokens.put(audience, signed(audience, ROOT)), 202)
        self.round_trip(connection, "s264")

    def test_s265_a_token_is_good_for_its_resource_only(self):
        connection = self.opened(secured.nameless)
        tokens, audience = Tokens(connection), f"{SERVICE}/s265"
        self.assertEqual(tokens.put(f"{SERVICE}/s265b", signed(audience, ROOT)), 401)
        self.assertEqual(tokens.put(audience, signed(audience, ROOT)), 202)
        self.round_trip(connection, "s265")
        self.denied(connection, "s265b")

    def test_s291_plain_is_enough_without_cbs(self):
        connection = self.opened(secured.plain, ROOT)
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
        listener, speaker = self.opened(secured.plain, "listener"), self.opened(secured.plain, "speaker")
        self.sender_of(speaker, "s291b").send(Message(body="heard"))
        self.unauthorized(self.receiver_of, speaker, "s291b")
        self.unauthorized(self.sender_of, listener, "s291b")
        message, _ = self.receive_one(self.receiver_of(listener, "s291b"))
        self.assertEqual(message.body, "heard")

    def test_s291_an_entitys_key_is_good_there_only(self):
        own = self.opened(secured.plain, "own", QUEUE_KEY)
        self.round_trip(own, "s291")
        for address in ("s291b", "no-such-queue"):
            self.denied(own, address)

    def test_s291_plain_with_a_wrong_key_does_not_connect(self):
        for name, key in ((ROOT, "wrong"), (ROOT, KEYS["listener"]), ("no-such-name", KEYS[ROOT])):
            self.not_connected("Authentication failed|unauthorized", secured.plain, name, key)

    def test_s292_external_is_the_rule_of_the_certificates_name(self):
        sender = self.sender_of(self.opened(secured.plain, "speaker"), "s292")
        for url in (f"amqps://localhost:{secured.port}", f"amqps://{ADDRESS}"):
            sender.send(Message(body=url))
            listener = self.opened(
                connect, url=url, ssl_domain=secured.trust("listener"), sni="localhost", allowed_mechs="EXTERNAL",
            )
            message, delivery = self.receive_one(self.receiver_of(listener, "s292"))
            self.assertEqual(message.body, url)
            delivery.update(delivery.ACCEPTED)
            listener.wait(lambda: delivery.settled, msg="settlement")
            self.unauthorized(self.sender_of, listener, "s292")

    def test_s292_external_with_another_certificate_or_none_does_not_connect(self):
        url = f"amqps://localhost:{secured.port}"
        for client_name in ("nobody", None):
            self.not_connected(
                "Authentication failed|unauthorized|mechanism", connect, url=url, ssl_domain=secured.trust(client_name),
                allowed_mechs="EXTERNAL",
            )

    def test_s293_anonymous_sees_cbs_and_nothing_else(self):
        connection = self.opened(secured.nameless)
        for address in ("s293", "s293/$management", "no-such-queue"):
            self.denied(connection, address)
        self.assertEqual(Tokens(connection).put(f"{SERVICE}/s293", signed(f"{SERVICE}/s293", "speaker")), 202)
        self.sender_of(connection, "s293").send(Message(body=1))
        self.unauthorized(self.receiver_of, connection, "s293")

    def test_s295_a_link_ends_with_its_token_and_others_stay(self):
        connection = self.opened(secured.nameless)
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

    def test_s294_tokens_that_are_none_and_good_ones(self):
        resource = f"{SERVICE}/s294"
        good = signed(resource, ROOT)
        sr, sig, se, skn = good.removeprefix("SharedAccessSignature ").split("&")
        bad = [
            "", "text", good.removeprefix("SharedAccessSignature "), good.replace(sig, "sig=AAAA"), good.replace(se, "se=1"),
            good.replace(se, "se=never"), good.replace(skn, "skn=no-such-rule"), good.replace(f"&{skn}", ""),
            good.replace(f"&{se}", ""), f"{good}&{se}", signed(resource, "listener", KEYS[ROOT]),
            signed(resource, ROOT, expiry=int(time.time()) - 600), signed(f"{SERVICE}/s294b", ROOT),
        ]
        for token in bad:
            connection = secured.nameless()
            self.assertEqual(Tokens(connection).put(resource, token), 401, token)
            self.denied(connection, "s294")
            connection.close()
        for token, reach in (
            (good, "s294"), (signed(f"{SERVICE}/s294", ROOT), "s294/below"), (signed(SERVICE, ROOT), "s294b"),
            (signed(f"amqps://localhost:5671/s294", ROOT), "s294"), (signed(f"{SERVICE.upper()}/S294", ROOT), "s294"),
            ("SharedAccessSignature " + "&".join((se, skn, sig, sr)), "s294"),
        ):
            connection = secured.nameless()
            self.assertEqual(Tokens(connection).put(f"{SERVICE}/{reach}", token), 202, token)
            self.sender_of(connection, reach).close()
            connection.close()

    def test_s296_each_operation_wants_its_right(self):
        listener, speaker = self.opened(secured.plain, "listener"), self.opened(secured.plain, "speaker")
        listening, speaking = Management(self, "s296", listener), Management(self, "s296", speaker)
        [number] = speaking.schedule([Message(body="later")], 4_000_000_000_000)
        self.assertEqual([message.body for message in listening.peek()], ["later"])
        denied = (401, "amqp:unauthorized-access")
        cancel = {"sequence-numbers": longs(number)}
        listening.refused("cancel-scheduled-message", cancel, *denied)
        peek = {"from-sequence-number": 1, "message-count": int32(1)}
        speaking.refused("peek-message", peek, *denied)
        for operation in ("renew-lock", "receive-by-sequence-number", "update-disposition", "get-message-sessions"):
            self.assertEqual(speaking.send_request(operation, {}).properties["statusCode"], 401, operation)
        speaking.cancel(number)
        self.assertEqual(listening.peek(), [])

    def test_s298_a_token_is_replaced_by_one_that_gives_less(self):
        connection, other = self.opened(secured.nameless), self.opened(secured.nameless)
        tokens, resource = Tokens(connection), f"{SERVICE}/s298"
        self.assertEqual(tokens.put(resource, signed(resource, ROOT)), 202)
        sender, receiver = self.sender_of(connection, "s298"), self.receiver_of(connection, "s298")
        sender.send(Message(body=1))
        self.denied(other, "s298")
        with self.assertRaises(LinkDetached) as raised:
            self.assertEqual(tokens.put(resource, signed(resource, "speaker")), 202)
            connection.wait(lambda: receiver.link.state & Endpoint.REMOTE_CLOSED, msg="end of the receiver")
        self.assertEqual(raised.exception.condition, "amqp:unauthorized-access")
        sender.send(Message(body=2))

    def test_s299_a_key_is_good_in_its_namespace(self):
        here = self.opened(secured.plain, ROOT)
        there = self.opened(secured.plain, ROOT, ELSEWHERE, virtual_host="elsewhere.servicebus.windows.net", sni="localhost")
        for connection, body in ((here, "here"), (there, "there")):
            self.sender_of(connection, "s299").send(Message(body=body))
            message, _ = self.receive_one(self.receiver_of(connection, "s299"))
            self.assertEqual((message.body, message.annotations["x-opt-sequence-number"]), (body, 1))
        self.refused(self.sender_of, there, "s291", condition="amqp:not-found")
        self.denied(self.opened(secured.plain, ROOT, ELSEWHERE), "s299")
