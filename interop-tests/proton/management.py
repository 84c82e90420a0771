"""The management node of an entity, asked by hand: the operations that are no links."""

import time
from uuid import UUID

from proton import Array, Data, Link, Message, UNDESCRIBED, int32, symbol, timestamp, uint
from proton.reactor import LinkOption

from client import RECEIVER_FIRST, unique_name

LOCK_LOST = (410, "com.microsoft:message-lock-lost")
NOT_FOUND = (404, "com.microsoft:message-not-found")
SESSION_LOST = (410, "com.microsoft:session-lock-lost")
# The end of time: sessions that have a message or a state now.
NOW = 253_402_300_799_999


class ReplyTo(LinkOption):
    """A receiver whose target is where answers are to go."""

    def __init__(self, address: str):
        self.address = address

    def apply(self, link: Link) -> None:
        RECEIVER_FIRST.apply(link)
        link.target.address = self.address


def longs(*numbers: int) -> Array:
    return Array(UNDESCRIBED, Data.LONG, *numbers)


def uuids(*tokens: UUID) -> Array:
    return Array(UNDESCRIBED, Data.UUID, *tokens)


def disposition(status: str, *tokens: UUID, **more) -> dict:
    return {"disposition-status": status, "lock-tokens": uuids(*tokens), **{key.replace("_", "-"): more[key] for key in more}}


def token_of(message: Message) -> UUID:
    return message.instructions["x-opt-lock-token"]


def in_seconds(seconds: float) -> int:
    """Milliseconds since 1970."""
    return round((time.time() + seconds) * 1000)


class Management:
    """The management node of an entity, asked in a transaction or outside."""

    def __init__(self, test, entity: str, connection=None, link: str | None = None):
        self.test, self.reply_to, self.link = test, unique_name(), link
        self.connection = connection or test.connection
        self.kept: list[Message] = []
        address = f"{entity}/$management"
        self.requests = self.connection.create_sender(address, name=unique_name())
        self.responses = test.receiver(address, ReplyTo(self.reply_to), connection=self.connection)

    def ask_raw(self, properties: dict, body, transaction=None) -> Message:
        """Whatever is answered."""
        request = Message(id=unique_name(), reply_to=self.reply_to, properties=properties, body=body)
        if transaction is None:
            self.requests.send(request)
        else:
            self.test.send_in(transaction, self.requests, request)
        response, _ = self.test.receive_one(self.responses)
        # Proton decodes binary as a view of the message's memory, and does not keep the message for it.
        self.kept.append(response)
        self.test.assertEqual(response.correlation_id, request.id)
        return response

    def send_request(self, operation: str, body, transaction=None) -> Message:
        properties = {"operation": f"com.microsoft:{operation}"}
        if self.link:
            properties["associated-link-name"] = self.link
        return self.ask_raw(properties, body, transaction)

    def ask(self, operation: str, body: dict, transaction=None) -> Message:
        response = self.send_request(operation, body, transaction)
        self.test.assertIn(response.properties["statusCode"], (200, 204), response.properties)
        return response

    def refused(self, operation: str, body, status: int, condition: str | None = None) -> str:
        """Asks for what must be refused; the description."""
        response = self.send_request(operation, body)
        self.test.assertEqual(response.properties["statusCode"], status, response.properties)
        if condition:
            self.test.assertEqual(response.properties["errorCondition"], condition)
        return response.properties["statusDescription"]

    def dispose(self, message: Message, status: str) -> None:
        """Settles a message by the lock token that came with it."""
        self.ask("update-disposition", disposition(status, token_of(message)))

    def settle(self, status: str, *tokens: UUID, **more) -> None:
        self.ask("update-disposition", disposition(status, *tokens, **more))

    def renew(self, *tokens: UUID) -> list[int]:
        """When the locks end now, in milliseconds."""
        expirations = self.ask("renew-lock", {"lock-tokens": uuids(*tokens)}).body["expirations"]
        self.test.assertEqual((expirations.type, len(expirations.elements)), (Data.TIMESTAMP, len(tokens)))
        return list(expirations.elements)

    def renew_fails(self, *tokens: UUID) -> None:
        self.refused("renew-lock", {"lock-tokens": uuids(*tokens)}, *LOCK_LOST)

    def schedule(self, messages: list[Message], when: int, transaction=None) -> list[int]:
        """Schedules messages for a time; their numbers."""
        entries = []
        for message in messages:
            message.annotations = {**(message.annotations or {}), symbol("x-opt-scheduled-enqueue-time"): timestamp(when)}
            message.id = message.id or unique_name()
            entry = {"message-id": message.id, "message": message.encode()}
            if message.group_id:
                entry["session-id"] = message.group_id
            entries.append(entry)
        numbers = self.ask("schedule-message", {"messages": entries}, transaction).body["sequence-numbers"]
        self.test.assertEqual((numbers.type, len(numbers.elements)), (Data.LONG, len(messages)))
        return list(numbers.elements)

    def cancel(self, *numbers: int, transaction=None) -> None:
        self.ask("cancel-scheduled-message", {"sequence-numbers": longs(*numbers)}, transaction)

    def cancel_fails(self, *numbers: int) -> None:
        self.refused("cancel-scheduled-message", {"sequence-numbers": longs(*numbers)}, *NOT_FOUND)

    @staticmethod
    def _by_number(numbers, mode: int, session: str | None) -> dict:
        body = {"sequence-numbers": longs(*numbers), "receiver-settle-mode": uint(mode)}
        return {**body, "session-id": session} if session else body

    def by_number(self, *numbers: int, mode: int = 1, session: str | None = None) -> list[tuple[Message, UUID]]:
        """Deferred messages, with their lock tokens."""
        body = self.ask("receive-by-sequence-number", self._by_number(numbers, mode, session)).body
        return [(decoded(entry), entry.get("lock-token")) for entry in body["messages"]]

    def by_number_fails(self, *numbers: int, session: str | None = None) -> None:
        self.refused("receive-by-sequence-number", self._by_number(numbers, 1, session), *NOT_FOUND)

    def peek(self, start: int = 1, count: int = 100, session: str | None = None) -> list[Message]:
        body = {"from-sequence-number": start, "message-count": int32(count)}
        if session:
            body["session-id"] = session
        response = self.ask("peek-message", body)
        if response.properties["statusCode"] == 204:
            return []
        return [decoded(entry) for entry in response.body["messages"]]

    def peeked(self) -> list[int]:
        """The numbers of all messages."""
        return [message.annotations["x-opt-sequence-number"] for message in self.peek()]

    def renew_session(self, session: str) -> int:
        return self.ask("renew-session-lock", {"session-id": session}).body["expiration"]

    def set_state(self, session: str, state: bytes | None) -> None:
        self.ask("set-session-state", {"session-id": session, "session-state": state})

    def state(self, session: str) -> bytes | None:
        state = self.ask("get-session-state", {"session-id": session}).body["session-state"]
        return None if state is None else bytes(state)

    def sessions(self, since: int = NOW, page: int = 100) -> list[str]:
        """All of them, by pages."""
        found: list[str] = []
        while True:
            body = {"last-updated-time": timestamp(since), "skip": int32(len(found)), "top": int32(page)}
            response = self.ask("get-message-sessions", body)
            if response.properties["statusCode"] == 204:
                return found
            ids = response.body["sessions-ids"]
            self.test.assertTrue(1 <= len(ids.elements) <= page)
            found += ids.elements

    def add_rule(self, name: str, filter: dict, action: str | None = None) -> dict:
        """The request for a rule."""
        description = {**filter, "sql-rule-action": None if action is None else {"expression": action}}
        return {"rule-name": name, "rule-description": description}

    def rules(self, skip: int = 0, top: int = 100) -> list:
        """Described lists: filter, action, name, time of creation."""
        response = self.ask("enumerate-rules", {"skip": int32(skip), "top": int32(top)})
        if response.properties["statusCode"] == 204:
            return []
        rules = response.body["rules"]
        return [entry["rule-description"] for entry in (rules if isinstance(rules, list) else rules.elements)]


def decoded(entry: dict) -> Message:
    message = Message()
    message.decode(bytes(entry["message"]))
    return message
