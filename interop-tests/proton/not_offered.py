"""What of ../scenarios.md Proton's Python client has no call for."""

BATCH = "its senders have message format 0 only, and a batch has another"

NOT_OFFERED = {
    "S10": BATCH,
    "S135": BATCH,
    "S166": BATCH,
    "S183": BATCH,
    "S215": BATCH,
    "S263": "no WebSockets",
    "S297": "no choice of the address that a connection comes from",
    "S308": "its blocking client makes no connection anew; its other one does (S348)",
    "S323": "its messages have one data section or one value",
    "S324": "it encodes its messages itself",
}
