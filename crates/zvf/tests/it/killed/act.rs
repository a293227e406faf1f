//! What a process does to a store until it is killed.

use std::collections::BTreeSet;

use zvf::{CreateOptions, Editor, Error, OpenOptions};
use zvf_build::{Geometry, GeometryKind, OutOfBounds, Profile, ShardingPolicy, Values};
use zvf_model::key::Key;

use super::state::State;
use crate::written::random::{self, Case};

/// A verb of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Verb {
    Create,
    /// Creates a store in the place of another, of another kind.
    Replace,
    Append,
    Exchange,
    Remove,
    Compact,
    /// Finishes what a process left that was killed appending.
    Finish,
    /// Puts a store over another without a transaction: a control, which leaves
    /// stores that are neither.
    Careless,
}

impl Verb {
    /// What users do.
    pub(crate) const ALL: [Self; 7] = [
        Self::Create,
        Self::Replace,
        Self::Append,
        Self::Exchange,
        Self::Remove,
        Self::Compact,
        Self::Finish,
    ];
}

/// A verb, and the random store that it is done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Act {
    pub(crate) verb: Verb,
    pub(crate) kind: GeometryKind,
    pub(crate) seed: u64,
}

/// What a store is to be like.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Like {
    Plain,
    Sharded,
    Checked,
    /// Of few objects, for servers that take long.
    #[cfg_attr(
        not(all(feature = "aws", feature = "azure", feature = "gcp", feature = "http")),
        expect(dead_code, reason = "no server")
    )]
    Tiny,
}

impl Act {
    /// The first one with a store of few chunks that the verb can be done to.
    pub(crate) fn first(verb: Verb, kind: GeometryKind, like: Like, from: u64) -> Self {
        let acts = (from..).map(|seed| Self { verb, kind, seed });
        let mut acts = acts.filter(|act| act.suits(like));
        acts.next().unwrap()
    }

    fn suits(self, like: Like) -> bool {
        let Case {
            geometry, design, ..
        } = self.case();
        let is_like = match like {
            Like::Plain => design.sharding == ShardingPolicy::None,
            Like::Sharded => matches!(design.sharding, ShardingPolicy::Shape(_)),
            Like::Checked => design.checksum == Some(true) || design.checksum == Some(false),
            Like::Tiny => geometry.vertex.len() == 1 && geometry.vertices() < 9,
        };
        let needs_ids = matches!(self.verb, Verb::Exchange | Verb::Remove | Verb::Compact);
        is_like
            && design.chunk_shape.is_some()
            && (4..12).contains(&geometry.vertices())
            && (!needs_ids || ids(&geometry).len() > 2)
    }

    fn case(self) -> Case {
        let mut case = random::case(self.seed, self.kind, Profile::V09);
        // Wherever it is made, it is the same.
        case.design.name = Some("killed".to_owned());
        case
    }

    /// As one word for another process.
    pub(super) fn word(self) -> String {
        format!("{:?}/{}/{}", self.verb, self.kind.name(), self.seed)
    }

    pub(super) fn of_word(word: &str) -> Self {
        let parts: Vec<&str> = word.split('/').collect();
        let verbs = Verb::ALL.into_iter().chain([Verb::Careless]);
        let mut verbs = verbs.filter(|verb| format!("{verb:?}") == parts[0]);
        let mut kinds = GeometryKind::ALL.into_iter();
        Self {
            verb: verbs.next().unwrap(),
            kind: kinds.find(|kind| kind.name() == parts[1]).unwrap(),
            seed: parts[2].parse().unwrap(),
        }
    }

    /// Makes what is there before. What [`Verb::Finish`] is about is only there
    /// after an [`Append`](Verb::Append) was killed.
    pub(super) async fn prepare(self, address: &str) {
        let Case {
            geometry, design, ..
        } = self.case();
        if self.verb == Verb::Create {
            return;
        }
        let options = CreateOptions::default();
        let later = later(&geometry, 1);
        let first = ids(&geometry);
        zvf::create(address, geometry, design, &options)
            .await
            .unwrap();
        if self.verb == Verb::Compact {
            let editor = editor(address, &OpenOptions::default()).await.unwrap();
            editor.append(&later, OutOfBounds::Expand).await.unwrap();
            editor.remove(&half(&first)).await.unwrap();
        }
    }

    /// Does it.
    pub(super) async fn perform(self, address: &str, open: &OpenOptions) -> Result<(), Error> {
        let Case {
            geometry, design, ..
        } = self.case();
        let other = self.other();
        let first = ids(&geometry);
        match self.verb {
            Verb::Create | Verb::Replace => {
                let mut options = CreateOptions::default();
                options.open = open.clone();
                // What a dead process left in a bucket has to be replaced by force.
                options.overwrite = true;
                let Case {
                    geometry, design, ..
                } = match self.verb {
                    Verb::Replace => other.case(),
                    _ => self.case(),
                };
                zvf::create(address, geometry, design, &options)
                    .await
                    .map(drop)
            }
            Verb::Append => {
                let editor = editor(address, open).await?;
                editor
                    .append(&later(&geometry, 2), OutOfBounds::Expand)
                    .await
                    .map(drop)
            }
            Verb::Exchange => {
                let gone: Vec<i64> = match self.kind {
                    // Their links lead to other objects, and would be lost.
                    GeometryKind::Graphs | GeometryKind::Mesh => first.into_iter().collect(),
                    _ => half(&first).into_iter().collect(),
                };
                let editor = editor(address, open).await?;
                let later = later(&geometry, 2);
                editor
                    .replace_objects(&gone, &later, OutOfBounds::Expand)
                    .await
                    .map(drop)
            }
            Verb::Remove => editor(address, open)
                .await?
                .remove(&half(&first))
                .await
                .map(drop),
            Verb::Compact => editor(address, open).await?.compact().await.map(drop),
            Verb::Finish => editor(address, open).await.map(drop),
            Verb::Careless => {
                let store = zvf::Store::create("memory:").unwrap();
                let plan = zvf_build::WritePlan::new(later(&geometry, 2), design).unwrap();
                zvf::create_from_plan(&store, plan, &CreateOptions::default()).await?;
                let files = State::files(&store).await?;
                let objects = files.into_iter();
                let objects =
                    objects.map(|(name, bytes)| (Key::parse(&name).unwrap(), bytes.into()));
                Ok(open.open(address)?.put_many(objects.collect()).await?)
            }
        }
    }

    /// A store to be put in the place of this one.
    fn other(self) -> Self {
        let at = GeometryKind::ALL
            .iter()
            .position(|kind| *kind == self.kind)
            .unwrap();
        let kind = GeometryKind::ALL[(at + 3) % GeometryKind::ALL.len()];
        Self::first_of(kind, self.seed)
    }

    fn first_of(kind: GeometryKind, from: u64) -> Self {
        let acts = (from..).map(|seed| Self {
            verb: Verb::Create,
            kind,
            seed,
        });
        let mut acts = acts.filter(|act| act.suits(Like::Plain));
        acts.next().unwrap()
    }
}

async fn editor(address: &str, open: &OpenOptions) -> Result<Editor, Error> {
    Editor::open_with(address, open).await
}

/// The same once more: other vertices at the same places, of other objects.
fn later(geometry: &Geometry, round: u64) -> Geometry {
    let mut later = geometry.clone();
    for attribute in &mut later.vertex {
        if let ("tag", Values::Numbers(tags)) = (attribute.name.as_str(), &mut attribute.values) {
            for tag in tags.bytes.chunks_exact_mut(8) {
                tag[5] = u8::try_from(round).unwrap();
            }
        }
    }
    let ids = later.object_ids.iter_mut().chain(&mut later.part_objects);
    for id in ids.flatten() {
        *id += i64::try_from(round).unwrap() << 50;
    }
    // What is said of a group is said already.
    later.groups.clear();
    later.group.clear();
    later
}

/// The objects of geometry that is stored alone.
fn ids(geometry: &Geometry) -> Vec<i64> {
    let parts = geometry.part_offsets.as_ref();
    let numbered = || parts.map(|offsets| (0..).take(offsets.len() - 1).collect());
    let own = geometry
        .part_objects
        .clone()
        .or_else(|| geometry.object_ids.clone());
    let ids: BTreeSet<i64> = own.or_else(numbered).into_iter().flatten().collect();
    ids.into_iter().collect()
}

fn half(ids: &[i64]) -> Vec<i64> {
    ids.iter().copied().step_by(2).collect()
}
