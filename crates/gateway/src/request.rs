//! Requests without a link: what clients and operators ask over HTTP, each a type that knows the type of its answer.
//!
//! A request is data until it runs. A shard is given it in a box, as [`AnyRequest`], and hands its answer back as
//! [`AnyAnswer`]; who has sent it knows the types of both.

use std::any::Any;
use std::fmt;

use crate::Gateway;
use jitney_base::ids::BodyRef;
use jitney_broker::access::Authority;
use jitney_broker::namespace::administration::AdminRequest;
use jitney_broker::namespace::{Denied, StepContext};

/// Who asks for something, and where.
#[derive(Debug, Clone)]
pub struct Requester {
    /// The host by which the client calls the namespace.
    pub host: Option<String>,
    /// The client's rights.
    pub authority: Authority,
}

/// A request of one kind.
pub trait Request: fmt::Debug + Send + 'static {
    /// What is answered.
    type Answer: fmt::Debug + Send + 'static;

    /// Carries it out in one step. The answer rests on the newest group of records.
    ///
    /// # Errors
    ///
    /// Nothing has changed then.
    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<Self::Answer, Denied>;

    /// Returns where the bytes are that belong to an answer.
    fn bodies(_answer: &Self::Answer) -> Vec<BodyRef> {
        Vec::new()
    }
}

/// A request of any kind.
pub trait AnyRequest: fmt::Debug + Send {
    /// Carries it out, as [`Request::run`] does.
    fn run(
        self: Box<Self>,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Outcome;
}

/// The answer to a request of any kind.
pub trait AnyAnswer: Any + fmt::Debug + Send {}

impl<T: Any + fmt::Debug + Send> AnyAnswer for T {}

/// The outcome of a request of any kind.
#[derive(Debug)]
pub struct Outcome {
    /// Its answer.
    pub answer: Result<Box<dyn AnyAnswer>, Denied>,
    /// Where the bytes are that belong to it.
    pub bodies: Vec<BodyRef>,
}

impl<R: Request> AnyRequest for R {
    fn run(
        self: Box<Self>,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Outcome {
        match gateway.serve(cx, requester, *self) {
            Ok(answer) => Outcome {
                bodies: R::bodies(&answer),
                answer: Ok(Box::new(answer)),
            },
            Err(denied) => Outcome {
                bodies: Vec::new(),
                answer: Err(denied),
            },
        }
    }
}

impl Gateway {
    /// Carries a request out, and counts it if it is refused.
    ///
    /// # Errors
    ///
    /// Nothing has changed then.
    pub fn serve<R: Request>(
        &mut self,
        cx: &mut StepContext<'_>,
        requester: &Requester,
        request: R,
    ) -> Result<R::Answer, Denied> {
        let done = request.run(self, cx, requester);
        self.refusals.count_if_refused(&done);
        done
    }
}

impl<R: AdminRequest> Request for R {
    type Answer = R::Answer;

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<R::Answer, Denied> {
        let Requester { host, authority } = requester;
        gateway.with_namespaces(cx, |namespaces, cx| {
            namespaces.administer(cx, host.as_deref(), authority, self)
        })
    }
}
