//! Turns of jobs, and answers that need bytes.

use bytes::Bytes;

use super::durability::Pending;
use super::{Answer, Cause, Output, ReadDone, ReadPurpose, RequestAnswer, RequestId, Shard, Store};
use jitney_base::ids::BodyRef;
use jitney_base::time::Timestamp;
use jitney_broker::namespace::JobPage;
use jitney_gateway::Gateway;
use jitney_gateway::request::Outcome;

impl Shard {
    /// Returns whether a job may have its turn: the disk keeps up, and no bytes are being read for one. Where messages are
    /// refused, those that delete may: they free what is full.
    pub(super) fn may_work(&self) -> bool {
        0 < self.gateway.namespaces().workable_jobs()
            && self.maintenance.job.is_none()
            && self.durability.is_below_max()
            && !self.is_stopping
    }

    /// Does a step of a job, or asks for the bytes that it needs; not after a costly step in the same turn. Its records are
    /// sealed if a checkpoint may come next.
    pub(super) fn work(&mut self, now: Timestamp) {
        if self.may_work() && !self.maintenance.job_rests {
            self.begin_step(now);
            self.seal_if_wanted(now);
        }
    }

    fn begin_step(&mut self, now: Timestamp) {
        let page = self.step(now, Cause::Job, Gateway::job_page);
        let Some(page) = page else {
            return;
        };
        let bodies = page.bodies();
        let cached = bodies
            .iter()
            .map(|&body| Some((body, self.journal.cached(body)?)));
        match cached.collect::<Option<Vec<_>>>() {
            Some(found) => self.work_on(now, page, &found),
            None => {
                self.read(ReadPurpose::Job, bodies);
                self.maintenance.job = Some(page);
            }
        }
    }

    /// Goes on with a job whose messages' bytes were read.
    pub(super) fn job_read(&mut self, now: Timestamp, done: &ReadDone) {
        let Some(page) = self.maintenance.job.take() else {
            return;
        };
        let bodies = page.bodies().into_iter();
        let found: Vec<_> = bodies
            .filter_map(|body| Some((body, done.body(body)?)))
            .collect();
        self.work_on(now, page, &found);
    }

    fn work_on(&mut self, now: Timestamp, page: JobPage, found: &[(BodyRef, Bytes)]) {
        let find = |body: BodyRef| {
            let bytes = found.iter().find(|(other, _)| *other == body);
            bytes.map(|(_, bytes)| bytes.clone())
        };
        self.step(now, Cause::Job, |gateway, cx| gateway.work(cx, page, &find));
        self.maintenance.job_rests = self.gateway.namespaces().job_was_costly();
        self.seal_if_large(now);
    }

    /// An answer may leave: it does, unless bytes must be read first.
    pub(super) fn release_answer(&mut self, request: RequestId, outcome: Outcome) {
        let cached = outcome.bodies.iter();
        let cached = cached.map(|&body| self.journal.cached(body).map(Some));
        if let Some(bodies) = cached.collect() {
            self.answer_request(request, outcome, bodies);
        } else {
            self.read(ReadPurpose::Answer(request), outcome.bodies.clone());
            self.answers.insert(request, outcome);
        }
    }

    /// Releases an answer whose bytes were read. Bytes that are damaged are left out.
    pub(super) fn answer_read(&mut self, request: RequestId, done: &ReadDone) {
        let Some(outcome) = self.answers.remove(&request) else {
            return;
        };
        if self.store == Store::Here {
            let bodies = outcome.bodies.iter().map(|&body| done.body(body));
            let bodies = bodies.collect();
            self.answer_request(request, outcome, bodies);
        } else {
            let group = self.newest_group();
            self.durability
                .defer(group, Pending::Answer(request, outcome));
        }
    }

    fn answer_request(&mut self, id: RequestId, outcome: Outcome, bodies: Vec<Option<Bytes>>) {
        let answer = outcome.answer;
        let answer = Answer::Request(RequestAnswer { answer, bodies });
        self.outputs.push_back(Output::Answer(id, answer));
    }
}
