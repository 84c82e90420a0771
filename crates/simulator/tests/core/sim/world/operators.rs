//! Requests of operators, and their answers.

use jitney_broker::access::Inquiry;
use jitney_gateway::request::Requester;
use jitney_shard::{Answer, Call, Credential};

use super::*;

impl Harness {
    /// An operator asks something.
    pub(in crate::sim) fn operate(&mut self, request: &Request) -> Result<(), Stop> {
        if self.is_away {
            return Ok(());
        }
        let now = self.now;
        self.trace.note(|| format!("{now}: {request:?}"));
        let inquiry = Inquiry {
            peer: Origin::default().peer,
            host: None,
            nowhere: None,
            token: None,
            path: String::new(),
            supplementary: Vec::new(),
        };
        let authority = self
            .shard
            .authorize(Timestamp::from_millis(now), &inquiry)
            .map_err(|refused| format!("an operator has no rights: {refused:?}"))?;
        let id = RequestId(self.next_request);
        self.next_request += 1;
        let host = None;
        let call = Call {
            credential: Credential::Authorized(Requester { host, authority }),
            request: request.request(&self.paths),
        };
        self.handle(Input::Request(id, Box::new(call)));
        let mut seen = self.seen.take();
        let (Some(Happened::Step(step)), true) = (seen.pop(), seen.is_empty()) else {
            return Err(Stop::Wrong("a request is one step".to_owned()));
        };
        let sights = self.note(step.sights)?;
        let observed = Observed {
            now,
            group: step.group,
            sights: &sights,
        };
        let (pins, due) = self.auditor.operate(observed, request)?;
        self.asked.insert(id, (request.clone(), due));
        self.wait_for(&sights, &pins);
        let wanted = self.shard.gateway().poll_timeout();
        self.auditor.check_timeout(wanted)?;
        self.shard.seal_if_large(Timestamp::from_millis(now));
        self.judge()
    }

    /// An operator is answered.
    pub(super) fn answered(&mut self, id: RequestId, answer: Answer) -> Result<(), Stop> {
        if let Answer::Received(answer) = &answer {
            return self.received(id, answer);
        }
        let Answer::Request(answer) = answer else {
            return Err(Stop::Wrong(format!("{answer:?} to {id:?}")));
        };
        if self.has_ended(id, &answer.answer)? {
            return Ok(());
        }
        let asked = self.asked.remove(&id);
        let (request, due) = asked.ok_or_else(|| format!("nobody asked for {answer:?}"))?;
        let outcome = self.auditor.answered(&due, &answer.answer, &self.paths);
        let outcome = outcome.map_err(|error| format!("{request:?}: {error}"))?;
        self.trace
            .note(|| format!("    {request:?} is answered: {outcome:?}"));
        self.answers.push((request, outcome));
        Ok(())
    }
}
