//! One cell of a call: what is read of it, and what is made of that.

use core::mem;

use bytes::Bytes;

use super::{
    Answer, CellError, Subject,
    child::{Blob, Child, Look},
    element::{Delivered, Element, Part, Plan, length},
    indexes::Known,
    kept::Place,
};
use crate::{range::Read, read::Budget};

/// What came of a job, and what of it may be kept.
pub(super) type Done = (Outcome, Option<(Place, Bytes)>);

/// A cell whose reads are planned.
pub(super) struct Job {
    what: Planned,
    parts: Vec<Part>,
    reads: Vec<Read>,
}

enum Planned {
    Refused(CellError),
    Element(Element, Plan),
    /// It was kept.
    Kept(Element, Bytes),
    Child(Child),
}

pub(super) enum Outcome {
    /// An answer to each part.
    Done(Vec<Answer>),
    Elsewhere(Child, Vec<Part>, Blob),
}

impl Job {
    pub(super) fn plan(
        subject: Result<Subject, CellError>,
        parts: Vec<Part>,
        known: &Known,
    ) -> Self {
        let mut reads = Vec::new();
        let what = match subject {
            Err(error) => Planned::Refused(error),
            Ok(Subject::Element(element)) => {
                let plan = element.plan(&parts, known, &mut reads);
                Planned::Element(element, plan)
            }
            Ok(Subject::Child(child)) => {
                child.plan(&mut reads);
                Planned::Child(child)
            }
        };
        Self { what, parts, reads }
    }

    /// With a payload that is at hand.
    pub(super) fn kept(element: Element, parts: Vec<Part>, payload: Bytes) -> Self {
        Self {
            what: Planned::Kept(element, payload),
            parts,
            reads: Vec::new(),
        }
    }

    /// Whether no other job has anything to do with its objects.
    pub(super) fn is_apart(&self) -> bool {
        match &self.what {
            Planned::Element(element, _) => element.shard().is_none(),
            Planned::Refused(_) | Planned::Kept(..) | Planned::Child(_) => true,
        }
    }

    /// How many reads it has put down.
    pub(super) fn reads(&self) -> usize {
        self.reads.len()
    }

    /// What it needs read.
    pub(super) fn take_reads(&mut self) -> Vec<Read> {
        mem::take(&mut self.reads)
    }

    /// How much work it is to decode what was read, in bytes.
    pub(super) fn work(&self, delivered: &[Delivered]) -> usize {
        let bytes = delivered.iter().flatten().flatten();
        let bytes = bytes.map(Bytes::len).fold(0, usize::saturating_add);
        match &self.what {
            Planned::Element(element, Plan::Whole) => element.work(bytes),
            Planned::Element(..) | Planned::Kept(..) | Planned::Refused(_) => 0,
            // How it is compressed its metadata say.
            Planned::Child(_) => bytes,
        }
    }

    /// The answers, made from what the planned reads brought, and what can be kept.
    pub(super) fn finish(self, delivered: Vec<Delivered>, budget: &Budget, keeps: bool) -> Done {
        let parts = self.parts;
        let mut delivered = delivered.into_iter();
        let mut next = || delivered.next().unwrap_or(Ok(None));
        let (element, payload) = match self.what {
            Planned::Refused(error) => {
                let refused = parts.iter().map(|_| Err(error.clone()));
                return (Outcome::Done(refused.collect()), None);
            }
            Planned::Element(element, Plan::Known(outcome)) => (element, outcome.map(|()| None)),
            Planned::Element(element, Plan::Parts { head, room }) => {
                let answers = element.take_parts(&parts, delivered, head, room);
                return (Outcome::Done(answers), None);
            }
            Planned::Element(element, Plan::Whole) => {
                let payload = element.payload(next(), budget);
                let answers = Outcome::Done(element.cut(&payload, &parts));
                let payload = payload.ok().flatten().filter(|_| keeps);
                let kept = payload.and_then(|payload| {
                    let place = element.place()?.clone();
                    Some((place, element.alone(payload)))
                });
                return (answers, kept);
            }
            // As much is held as if it had been read.
            Planned::Kept(element, payload) => {
                let reserved = budget.reserve(element.key(), length(&payload));
                (
                    element,
                    reserved.map(|()| Some(payload)).map_err(CellError::from),
                )
            }
            Planned::Child(child) => {
                let (metadata, chunk) = (next(), next());
                let payload = match child.look(metadata, chunk) {
                    Look::Known(payload) => payload,
                    Look::Chunk(blob, chunk) => blob.payload(Ok(Some(chunk)), budget),
                    Look::Elsewhere(blob) => return (Outcome::Elsewhere(child, parts, blob), None),
                };
                return (Outcome::Done(child.answers(&payload, &parts)), None);
            }
        };
        (Outcome::Done(element.cut(&payload, &parts)), None)
    }
}

impl Outcome {
    /// The answers, with the chunk that was read where there is one.
    pub(super) fn finish(self, chunk: Option<Delivered>, budget: &Budget) -> Vec<Answer> {
        match self {
            Self::Done(answers) => answers,
            Self::Elsewhere(child, parts, blob) => {
                let payload = blob.payload(chunk.unwrap_or(Ok(None)), budget);
                child.answers(&payload, &parts)
            }
        }
    }
}
