//! Connections whose acts go as bytes: the server's end is a peer with its engine, as in production,
//! and the client's end is written here, with frames of its own encoding. Both read what comes in
//! pieces of any size. What the peer reports must be what the act says, and what the client reads
//! must be what the shard sent.

use std::collections::{BTreeMap, VecDeque};

use bytes::BytesMut;
use jitney_amqp::{Condition, Config, Connection, Event, LinkId};
use jitney_base::ids::{ConnectionId, LockToken};
use jitney_base::time::Timestamp;
use jitney_shard::peer::Peer;
use jitney_shard::{Outgoing, Report};

use super::acts::{ClientAction, LinkKey};
use super::audit::ClientObservation;
use super::client::{Client, Heard, Said};
use super::random::Stream;
use super::sights::at_of;

/// The engines' time: nothing is ever due.
const NOW: Timestamp = Timestamp::EPOCH;

/// Something that has left the shard, with its place in the order in which it was told.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) told: u64,
    pub(super) sight: ClientObservation,
    /// There is no frame for it.
    pub(super) is_silent: bool,
    /// It may come, or not: a response for which there was no credit while it waited for the client, or the answer to a
    /// drain that an earlier answer may have given too.
    pub(super) is_unsure: bool,
}

/// All connections.
pub(super) struct Wires {
    random: Stream,
    /// Which clients have small windows, and when they open these, or do not read.
    windows: Stream,
    wires: BTreeMap<u32, Wire>,
    /// Frames that clients have read, acts that could not be said, and what was kept back.
    pub(super) figures: [usize; 3],
}

/// One connection, with both its ends.
struct Wire {
    peer: Peer,
    client: Client,
    /// What the client has sent, and the engine has not taken.
    input: BytesMut,
    /// What the peer has to report beside what its client does.
    reports: VecDeque<ClientAction>,
    /// What has left the shard, and the client has not read: its window is closed, or it does not read.
    pending: Vec<Left>,
    /// The client reads nothing for now.
    is_paused: bool,
    /// Received and deleted, and waiting for credit in the peer.
    stalled: VecDeque<Left>,
    /// The numbers by which the clients know deliveries that they decided about.
    numbers: BTreeMap<u32, u32>,
}

impl Wires {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Stream::new(seed, "bytes"),
            windows: Stream::new(seed, "windows"),
            wires: BTreeMap::new(),
            figures: [0; 3],
        }
    }

    /// All connections are lost.
    pub(super) fn clear(&mut self) {
        self.wires.clear();
    }

    /// Opens a connection, and returns what is reported of it.
    pub(super) fn open(&mut self, id: u32) -> Result<Vec<Report>, String> {
        let frame_max = *self.random.pick(&[512, 4_096, 65_536]).expect("some");
        let window = self.windows.percent(40);
        let window = window.then(|| *self.windows.pick(&[1, 2, 5, 30]).expect("some"));
        let mut wire = Wire {
            peer: Peer::new(Connection::server(Config::server("jitney"), NOW)),
            client: Client::new(id, frame_max, window),
            input: BytesMut::new(),
            reports: VecDeque::new(),
            pending: Vec::new(),
            is_paused: false,
            stalled: VecDeque::new(),
            numbers: BTreeMap::new(),
        };
        if self.random.percent(50) {
            wire.client.begin_sasl();
        }
        let bytes = wire.client.open();
        wire.feed(&mut self.random, &bytes)?;
        let reports = wire.peer.take_reports();
        let (heard, frames) = wire.read(&mut self.random)?;
        self.figures[0] += frames;
        if !heard.is_empty() {
            return Err(format!("a connection begins with {heard:?}"));
        }
        match reports.as_slice() {
            [Report::Event(Event::Opened { .. })] => {}
            other => return Err(format!("a connection opens, and {other:?} is reported")),
        }
        self.wires.insert(id, wire);
        Ok(reports)
    }

    /// Takes the next thing that a peer has to report beside what its client does.
    pub(super) fn reported(&mut self, connection: Option<u32>) -> Option<ClientAction> {
        let wires = self.wires.iter_mut();
        let mut wires = wires.filter(|(id, _)| connection.is_none_or(|of| of == **id));
        wires.find_map(|(_, wire)| wire.reports.pop_front())
    }

    pub(super) fn has_reports(&self) -> bool {
        let mut wires = self.wires.values();
        wires.any(|wire| !wire.reports.is_empty())
    }

    /// Carries out what a client does; returns what is reported of it, which is nothing if it cannot be
    /// said or says nothing. The act gets the numbers that it has on the wire. What came of it for the
    /// client goes to `left`.
    pub(super) fn say(
        &mut self,
        connection: u32,
        act: &mut ClientAction,
        paths: &[String],
        left: &mut Vec<(u64, ClientObservation)>,
    ) -> Result<Vec<Report>, String> {
        let Self {
            random,
            windows,
            wires,
            figures,
        } = self;
        let wire = wires.get_mut(&connection).ok_or("it is not open")?;
        if matches!(act, ClientAction::Close { .. }) && random.percent(50) {
            wire.peer.engine.handle_eof(NOW);
            wire.peer.take_events();
            let reports = wire.peer.take_reports();
            return self.close(connection, reports, act);
        }
        // What the engine itself answers: the client knows first what has become of the delivery.
        let is_in_transaction =
            matches!(act, ClientAction::Settle { transaction, .. } if transaction.is_some());
        let is_answered = matches!(
            act,
            ClientAction::Send { .. } | ClientAction::Request { .. }
        ) || is_in_transaction;
        if wire.is_paused && (is_answered || windows.percent(30)) {
            figures[0] += wire.resume(random, left)?;
        }
        let before = match act {
            ClientAction::Settle { delivery, .. } => Some(*delivery),
            _ => None,
        };
        if !wire.client.fit(act) {
            figures[1] += 1;
            return Ok(Vec::new());
        }
        if let (Some(before), ClientAction::Settle { delivery, .. }) = (before, &*act) {
            wire.numbers.insert(*delivery, before);
        }
        let Some((_, Report::Event(event))) = act.input(paths) else {
            return Err(format!("{act:?} is no client's"));
        };
        wire.doubt();
        let Said { bytes, is_refused } = wire.client.say(&event, random);
        wire.feed(random, &bytes)?;
        let reports = wire.peer.take_reports();
        if matches!(act, ClientAction::Close { .. }) {
            return self.close(connection, reports, act);
        }
        if let (
            ClientAction::Detach { at, kept },
            [Report::Event(Event::Detached { unsent, .. })],
        ) = (&mut *act, reports.as_slice())
        {
            kept.extend(unsent.iter().map(|tag| LockToken::from_tag(*tag)));
            wire.forget(at.link, kept)?;
            wire.check_given_back(at.link)?;
        }
        let (heard, frames) = wire.read(random)?;
        figures[0] += frames;
        if wire.peer.has_reports() {
            return Err(format!("{:?} is reported late", wire.peer.take_reports()));
        }
        if is_refused {
            // The engine refuses by itself what is too large.
            let condition = Condition::MessageSizeExceeded.as_str().to_owned();
            let delivery = match act {
                ClientAction::Send { delivery, .. } => *delivery,
                _ => 0,
            };
            let refused = Heard::refused(delivery, condition);
            return if reports.is_empty() && heard == [refused] {
                Ok(reports)
            } else {
                Err(format!(
                    "a message is too large, and {heard:?} comes of it, and {reports:?}"
                ))
            };
        }
        // Credit lets go what has waited for it.
        let stalled = wire.stalled.drain(..).collect();
        wire.hear(stalled, heard, left)?;
        let is_same = |report: &Report| match report {
            // It was compared with what the client has not read.
            Report::Event(Event::Detached { link, .. }) => {
                matches!(event, Event::Detached { link: of, .. } if *link == of)
            }
            Report::Event(found) => *found == event,
            _ => false,
        };
        match reports.as_slice() {
            [] => {
                figures[1] += 1;
                Ok(reports)
            }
            [report] if is_same(report) => Ok(reports),
            other => Err(format!("expected {event:?}\n       found {other:?}")),
        }
    }

    fn close(
        &mut self,
        id: u32,
        reports: Vec<Report>,
        act: &mut ClientAction,
    ) -> Result<Vec<Report>, String> {
        let wire = self.wires.remove(&id);
        match (reports.as_slice(), act, wire) {
            (
                [
                    Report::Event(Event::Closed {
                        error: None,
                        unsent,
                    }),
                ],
                ClientAction::Close { kept, .. },
                Some(mut wire),
            ) => {
                let unsent = unsent.iter();
                kept.extend(unsent.map(|(link, tag)| {
                    let link = LinkKey {
                        connection: id,
                        link: link.0,
                    };
                    (link, LockToken::from_tag(*tag))
                }));
                for (at, token) in kept {
                    wire.forget(at.link, &[*token])?;
                }
                // What was written and not read is lost with the connection.
                let is_kept = |left: &&Left| {
                    matches!(
                        left.sight,
                        ClientObservation::Delivered { delete: false, .. }
                    )
                };
                match wire.pending.iter().find(is_kept) {
                    Some(left) if !wire.is_paused => {
                        Err(format!("a connection ends, and {left:?} is not given back"))
                    }
                    _ => Ok(reports),
                }
            }
            (other, ..) => Err(format!("a connection ends, and {other:?} is reported")),
        }
    }

    /// Clients open their windows and read everything.
    pub(super) fn read_all(
        &mut self,
        left: &mut Vec<(u64, ClientObservation)>,
    ) -> Result<(), String> {
        for wire in self.wires.values_mut() {
            self.figures[0] += wire.resume(&mut self.random, left)?;
            while !wire.pending.is_empty() {
                let before = wire.pending.len();
                self.figures[0] += wire.widen(&mut self.random, left)?;
                // A large message takes more than one window.
                let is_stuck = wire.pending.len() == before && !wire.client.is_closed();
                if is_stuck {
                    return Err(format!("{:?} does not come", wire.pending));
                }
            }
        }
        Ok(())
    }

    /// Sends what has left the shard for a connection; what its client reads of it goes to `left`.
    pub(super) fn send(
        &mut self,
        id: ConnectionId,
        outgoing: VecDeque<Outgoing>,
        sent: Vec<Left>,
        left: &mut Vec<(u64, ClientObservation)>,
    ) -> Result<(), String> {
        let wire = self.wires.get_mut(&id.0).ok_or("nobody is there")?;
        wire.peer.outgoing.extend(outgoing);
        wire.pending.extend(sent);
        wire.doubt();
        if wire.is_paused {
            wire.is_paused = self.windows.percent(80);
        } else {
            wire.is_paused = self.windows.percent(4);
        }
        if wire.is_paused {
            wire.fill()?;
            self.figures[2] += wire.pending.len();
            return Ok(());
        }
        self.figures[0] += wire.resume(&mut self.random, left)?;
        if wire.client.is_closed() && self.windows.percent(40) {
            self.figures[0] += wire.widen(&mut self.random, left)?;
        }
        self.figures[2] += wire.pending.len();
        Ok(())
    }
}

/// Bytes of output that wait for a client that does not read.
const OUTPUT_BYTES: usize = 2_000;

impl Wire {
    /// Makes frames of what has left the shard, as long as there is room for them.
    fn fill(&mut self) -> Result<(), String> {
        let has_room =
            |wire: &Self| !wire.is_paused || wire.peer.engine.output_bytes() < OUTPUT_BYTES;
        while has_room(self) && self.peer.send_next(NOW).is_some() {}
        self.peer.take_events();
        if !self.is_paused && self.peer.engine.waiting_bytes() == 0 {
            self.peer.report_written();
        }
        let connection = self.client.id();
        let at = |link: LinkId| LinkKey {
            connection,
            link: link.0,
        };
        for report in self.peer.take_reports() {
            match report {
                Report::Returned { token, link } => {
                    let at = at(link);
                    self.forget(at.link, &[token])?;
                    self.reports.push_back(ClientAction::Returned { at, token });
                }
                Report::Event(Event::Unsent { link, tags }) => {
                    let at = at(link);
                    let tokens = tags.into_iter().map(LockToken::from_tag);
                    let tokens: Vec<LockToken> = tokens.collect();
                    self.forget(at.link, &tokens)?;
                    self.reports.push_back(ClientAction::Unsent { at, tokens });
                }
                Report::Written { link, bytes } => {
                    let at = at(link);
                    self.reports.push_back(ClientAction::Written { at, bytes });
                }
                // The shard was told at once.
                Report::Answered(_) => {}
                Report::Event(event) => return Err(format!("nobody did anything: {event:?}")),
                Report::TryIdentity(identity) => {
                    return Err(format!(
                        "there is one shard, and it is asked first: {identity:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Marks responses for which the client has no credit now.
    fn doubt(&mut self) {
        let mut before: BTreeMap<u32, usize> = BTreeMap::new();
        for left in &mut self.pending {
            if let ClientObservation::Answered(at, _) = &left.sight {
                let before = before.entry(at.link).or_default();
                left.is_unsure |= self.client.lacks_credit(at.link, *before);
                *before += 1;
            }
        }
    }

    /// Messages that have left the shard are given back: the client does not get them.
    fn forget(&mut self, link: u32, tokens: &[LockToken]) -> Result<(), String> {
        for wanted in tokens {
            let is_it = |left: &Left| {
                matches!(&left.sight, ClientObservation::Delivered { at, token, delete: false, .. }
                    if at.link == link && token == wanted)
            };
            match self.pending.iter().position(is_it) {
                Some(found) => drop(self.pending.remove(found)),
                None if self.client.is_gone(link) => {}
                None => return Err(format!("{wanted} is given back, and was read")),
            }
        }
        Ok(())
    }

    /// All that the client's window kept back of a link that ends was given back.
    fn check_given_back(&self, link: u32) -> Result<(), String> {
        let is_kept = |left: &&Left| matches!(left.sight, ClientObservation::Delivered { at, delete: false, .. } if at.link == link);
        match self.pending.iter().find(is_kept) {
            Some(left) if !self.is_paused => Err(format!("{left:?} is not given back")),
            _ => Ok(()),
        }
    }

    /// The client reads all that its window lets through; returns in how many frames.
    fn resume(
        &mut self,
        random: &mut Stream,
        left: &mut Vec<(u64, ClientObservation)>,
    ) -> Result<usize, String> {
        self.is_paused = false;
        self.fill()?;
        let (heard, frames) = self.read(random)?;
        self.hear(Vec::new(), heard, left)?;
        self.fill()?;
        Ok(frames)
    }

    /// The client opens its window, and reads on.
    fn widen(
        &mut self,
        random: &mut Stream,
        left: &mut Vec<(u64, ClientObservation)>,
    ) -> Result<usize, String> {
        let flow = self.client.widen();
        self.feed(random, &flow)?;
        self.resume(random, left)
    }

    /// Hands the engine what the client sends, in pieces.
    fn feed(&mut self, random: &mut Stream, bytes: &[u8]) -> Result<(), String> {
        let mut rest = bytes;
        let most = *random.pick(&[1, 30, 700, 1_000_000]).expect("some");
        while !rest.is_empty() {
            let longest = rest.len().min(most.max(rest.len() / 50));
            let (piece, after) = rest.split_at(1 + random.index(longest));
            rest = after;
            self.input.extend_from_slice(piece);
            loop {
                self.peer.engine.handle_bytes(NOW, &mut self.input);
                self.peer.take_events();
                if !self.peer.engine.is_held() {
                    break;
                }
            }
        }
        if self.input.is_empty() {
            Ok(())
        } else {
            Err(format!("{} bytes were not taken", self.input.len()))
        }
    }

    /// Lets the client read all that the engine has for it; returns what it hears, and in how many frames.
    fn read(&mut self, random: &mut Stream) -> Result<(Vec<Heard>, usize), String> {
        let (mut heard, mut frames) = (Vec::new(), 0);
        if self.is_paused {
            return Ok((heard, frames));
        }
        loop {
            self.peer.engine.go_on();
            let mut output = BytesMut::new();
            self.peer.engine.take_output(NOW, &mut output);
            if output.is_empty() {
                return if self.client.has_read_all() {
                    Ok((heard, frames))
                } else {
                    Err("a frame is cut".to_owned())
                };
            }
            while !output.is_empty() {
                let piece = output.split_to(1 + random.index(output.len()));
                frames += self.client.read(&piece, &mut heard)?;
            }
            let answer = self.client.take_output();
            self.feed(random, &answer)?;
        }
    }

    /// Holds what a client has heard against what was sent to it, with what has waited for credit, which was sent
    /// before the rest.
    fn hear(
        &mut self,
        stalled: Vec<Left>,
        heard: Vec<Heard>,
        left: &mut Vec<(u64, ClientObservation)>,
    ) -> Result<(), String> {
        let pending = std::mem::take(&mut self.pending);
        let all = stalled.into_iter().chain(pending);
        let mut expected: Vec<Option<Left>> = all.map(Some).collect();
        // Messages and answers of a link come in their order.
        let mut order: BTreeMap<u32, usize> = BTreeMap::new();
        for heard in heard {
            let is_it = |left: &Option<Left>| {
                left.as_ref()
                    .is_some_and(|left| !left.is_silent && Heard::of(&left.sight) == heard)
            };
            // Of a link that has gone it may be written, or not.
            let lasts = |left: &Option<Left>| {
                let at = left.as_ref().map(|left| at_of(&left.sight));
                at.is_some_and(|at| !self.client.is_gone(at.link))
            };
            let mut places = 0..expected.len();
            let found = places
                .clone()
                .find(|&at| is_it(&expected[at]) && lasts(&expected[at]))
                .or_else(|| places.find(|&at| is_it(&expected[at])));
            let Some(found) = found else {
                return Err(format!(
                    "a client reads {heard:?}\n       of {expected:?}, which was sent"
                ));
            };
            if let Some(link) = heard.transfer() {
                let before = order.insert(link, found);
                if before.is_some_and(|before| found < before) {
                    return Err(format!("a client reads {heard:?} out of its order"));
                }
            }
            let Left { told, sight, .. } = expected[found].take().expect("it was found");
            if matches!(heard, Heard::Drained(_)) {
                // It may answer the later drains of its link too.
                for other in expected.iter_mut().flatten() {
                    other.is_unsure |= Heard::of(&other.sight) == heard;
                }
            }
            left.push((told, self.as_known(sight)));
        }
        if self.is_paused || self.client.is_closed() {
            return self.keep(expected.into_iter().flatten(), left);
        }
        self.client.has_heard_all();
        for missing in expected.into_iter().flatten() {
            let at = at_of(&missing.sight);
            match &missing.sight {
                _ if missing.is_silent => left.push((missing.told, missing.sight)),
                ClientObservation::Delivered { delete: true, .. }
                    if self.client.is_without_credit(at.link) =>
                {
                    self.stalled.push_back(missing);
                }
                // A client that has ended a link gets nothing more for it.
                _ if self.client.is_gone(at.link) => {}
                ClientObservation::SettledOutgoing(_, delivery, _)
                | ClientObservation::SettledWithin(_, delivery, ..)
                    if !self.client.is_open(*delivery) => {}
                ClientObservation::Answered(..) if self.client.is_without_credit(at.link) => {}
                ClientObservation::Answered(..) | ClientObservation::Drained(..)
                    if missing.is_unsure => {}
                sight => return Err(format!("{sight:?} was sent, and no client reads it")),
            }
        }
        // What waits for credit ends with its link, whoever has ended that.
        let client = &self.client;
        let lasts = |left: &Left| !client.is_gone(at_of(&left.sight).link);
        self.stalled.retain(lasts);
        let (stalled, known) = (self.peer.stalled(), self.stalled.len());
        if stalled == known {
            Ok(())
        } else {
            Err(format!(
                "{stalled} messages wait for credit, and not {known}"
            ))
        }
    }

    /// What a client cannot read yet is to come later.
    fn keep(
        &mut self,
        missing: impl Iterator<Item = Left>,
        left: &mut Vec<(u64, ClientObservation)>,
    ) -> Result<(), String> {
        for missing in missing {
            let at = at_of(&missing.sight);
            // Nothing is said of a delivery that the client has settled meanwhile.
            let is_over = match &missing.sight {
                ClientObservation::SettledOutgoing(_, delivery, _)
                | ClientObservation::SettledWithin(_, delivery, ..) => {
                    !self.is_paused && !self.client.is_open(*delivery)
                }
                _ => false,
            };
            if missing.is_silent {
                left.push((missing.told, missing.sight));
            } else if !is_over && (self.is_paused || !self.client.is_gone(at.link)) {
                self.pending.push(missing);
            }
        }
        let is_message = |left: &Left| Heard::of(&left.sight).transfer().is_some();
        match self.pending.iter().find(|pending| !pending.is_unsure) {
            Some(first) if !self.is_paused && !self.pending.iter().any(is_message) => {
                Err(format!("no message keeps {first:?} back"))
            }
            _ => Ok(()),
        }
    }

    /// Returns what was told with the numbers that the clients have given.
    fn as_known(&self, mut sight: ClientObservation) -> ClientObservation {
        if let ClientObservation::SettledOutgoing(_, delivery, _)
        | ClientObservation::SettledWithin(_, delivery, ..) = &mut sight
        {
            *delivery = self.numbers.get(delivery).copied().unwrap_or(*delivery);
        }
        sight
    }
}
