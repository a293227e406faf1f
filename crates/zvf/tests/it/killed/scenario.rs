//! Operations of a child process on a store until it is killed.

use std::collections::BTreeSet;

use zvf::{CreateOptions, Editor, Error, OpenOptions};
use zvf_build::{
    CellChecksums, ColumnValues, GeometryBuilder, GeometryKind, OutOfBounds, Profile,
    ShardingPolicy,
};
use zvf_model::key::Key;

use super::state::State;
use crate::written::random::{self, Case};

/// A write operation of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Operation {
    Create,
    /// Replaces a store by a store of another kind.
    Replace,
    Append,
    Exchange,
    Remove,
    Compact,
    /// Finishes the transaction of a process killed while appending.
    Finish,
    /// Overwrites a store without a transaction. This control leaves stores in neither state.
    WithoutTransaction,
}

impl Operation {
    /// The operations available to users.
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

/// An operation and the random store to which it applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scenario {
    pub(crate) operation: Operation,
    pub(crate) kind: GeometryKind,
    pub(crate) seed: u64,
}

/// A property of the store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StoreProperty {
    Plain,
    Sharded,
    Checked,
    /// Few objects, because servers are slow.
    #[cfg_attr(
        not(all(feature = "aws", feature = "azure", feature = "gcp", feature = "http")),
        expect(dead_code, reason = "no server")
    )]
    Tiny,
}

impl Scenario {
    /// Returns the first scenario, by seed, whose store has few chunks and allows the operation.
    pub(crate) fn first(
        operation: Operation,
        kind: GeometryKind,
        property: StoreProperty,
        from: u64,
    ) -> Self {
        let mut scenarios = (from..)
            .map(|seed| Self {
                operation,
                kind,
                seed,
            })
            .filter(|scenario| scenario.matches(property));
        scenarios.next().unwrap()
    }

    fn matches(self, property: StoreProperty) -> bool {
        let Case {
            geometry, design, ..
        } = self.case();
        let has_property = match property {
            StoreProperty::Plain => design.sharding == ShardingPolicy::None,
            StoreProperty::Sharded => matches!(design.sharding, ShardingPolicy::Shape(_)),
            StoreProperty::Checked => design.checksums != CellChecksums::Auto,
            StoreProperty::Tiny => geometry.vertex.len() == 1 && geometry.vertices() < 9,
        };
        let needs_ids = matches!(
            self.operation,
            Operation::Exchange | Operation::Remove | Operation::Compact
        );
        has_property
            && design.chunk_shape.is_some()
            && (4..12).contains(&geometry.vertices())
            && (!needs_ids || ids(&geometry).len() > 2)
    }

    fn case(self) -> Case {
        let mut case = random::case(self.seed, self.kind, Profile::V09);
        // The name does not depend on the folder.
        case.design.name = Some("killed".to_owned());
        case
    }

    /// Encodes the scenario as one word for the child process.
    pub(super) fn word(self) -> String {
        format!("{:?}/{}/{}", self.operation, self.kind.name(), self.seed)
    }

    pub(super) fn of_word(word: &str) -> Self {
        let parts: Vec<&str> = word.split('/').collect();
        let mut operations = Operation::ALL
            .into_iter()
            .chain([Operation::WithoutTransaction])
            .filter(|operation| format!("{operation:?}") == parts[0]);
        let mut kinds = GeometryKind::ALL.into_iter();
        Self {
            operation: operations.next().unwrap(),
            kind: kinds.find(|kind| kind.name() == parts[1]).unwrap(),
            seed: parts[2].parse().unwrap(),
        }
    }

    /// Creates the previous state. The transaction that [`Operation::Finish`] completes only exists
    /// after an [`Append`](Operation::Append) was killed.
    pub(super) async fn prepare(self, address: &str) {
        let Case {
            geometry, design, ..
        } = self.case();
        if self.operation == Operation::Create {
            return;
        }
        let options = CreateOptions::default();
        let later = later(&geometry, 1);
        let first = ids(&geometry);
        zvf::create(address, geometry.build().unwrap(), design, &options)
            .await
            .unwrap();
        if self.operation == Operation::Compact {
            let editor = editor(address, &OpenOptions::default()).await.unwrap();
            editor
                .append(&later.build().unwrap(), OutOfBounds::Expand)
                .await
                .unwrap();
            editor.remove(&half(&first)).await.unwrap();
        }
    }

    /// Runs the operation.
    pub(super) async fn perform(self, address: &str, open: &OpenOptions) -> Result<(), Error> {
        let Case {
            geometry, design, ..
        } = self.case();
        let other = self.other();
        let first = ids(&geometry);
        match self.operation {
            Operation::Create | Operation::Replace => {
                let mut options = CreateOptions::default();
                options.open = open.clone();
                // Files that a killed process left in a bucket must be overwritten explicitly.
                options.overwrite = true;
                let Case {
                    geometry, design, ..
                } = match self.operation {
                    Operation::Replace => other.case(),
                    _ => self.case(),
                };
                zvf::create(address, geometry.build().unwrap(), design, &options)
                    .await
                    .map(drop)
            }
            Operation::Append => {
                let editor = editor(address, open).await?;
                editor
                    .append(&later(&geometry, 2).build().unwrap(), OutOfBounds::Expand)
                    .await
                    .map(drop)
            }
            Operation::Exchange => {
                let gone: Vec<i64> = match self.kind {
                    // Their links lead to other objects and would be lost.
                    GeometryKind::Graphs | GeometryKind::Mesh => first.into_iter().collect(),
                    _ => half(&first).into_iter().collect(),
                };
                let editor = editor(address, open).await?;
                let later = later(&geometry, 2);
                editor
                    .replace_objects(&gone, &later.build().unwrap(), OutOfBounds::Expand)
                    .await
                    .map(drop)
            }
            Operation::Remove => editor(address, open)
                .await?
                .remove(&half(&first))
                .await
                .map(drop),
            Operation::Compact => editor(address, open).await?.compact().await.map(drop),
            Operation::Finish => editor(address, open).await.map(drop),
            Operation::WithoutTransaction => {
                let store = zvf::Store::create("memory:").unwrap();
                let plan = zvf_build::WritePlan::new(later(&geometry, 2).build().unwrap(), design)
                    .unwrap();
                zvf::create_from_plan(&store, plan, &CreateOptions::default()).await?;
                let files = State::files(&store).await?;
                let objects = files
                    .into_iter()
                    .map(|(name, bytes)| (Key::parse(&name).unwrap(), bytes.into()));
                let store = open.open(address)?;
                Ok(store.put_many(objects.collect()).await?)
            }
        }
    }

    /// Returns a scenario whose store replaces the store of this one.
    fn other(self) -> Self {
        let at = GeometryKind::ALL
            .iter()
            .position(|kind| *kind == self.kind)
            .unwrap();
        let kind = GeometryKind::ALL[(at + 3) % GeometryKind::ALL.len()];
        Self::first_of(kind, self.seed)
    }

    fn first_of(kind: GeometryKind, from: u64) -> Self {
        let mut scenarios = (from..)
            .map(|seed| Self {
                operation: Operation::Create,
                kind,
                seed,
            })
            .filter(|scenario| scenario.matches(StoreProperty::Plain));
        scenarios.next().unwrap()
    }
}

async fn editor(address: &str, open: &OpenOptions) -> Result<Editor, Error> {
    Editor::open_with(address, open).await
}

/// Returns the same geometry with other vertices at the same positions, of other objects.
fn later(geometry: &GeometryBuilder, round: u64) -> GeometryBuilder {
    let mut later = geometry.clone();
    for attribute in &mut later.vertex {
        if let ("tag", ColumnValues::Numeric(tags)) =
            (attribute.name.as_str(), &mut attribute.values)
        {
            for tag in tags.bytes.chunks_exact_mut(8) {
                tag[5] = u8::try_from(round).unwrap();
            }
        }
    }
    for id in later.owners.ids_mut().into_iter().flatten() {
        *id += i64::try_from(round).unwrap() << 50;
    }
    // The attributes of groups are already stored.
    later.groups.clear();
    later.group.clear();
    later
}

/// Returns the ids of the objects of geometry that is stored alone.
fn ids(geometry: &GeometryBuilder) -> Vec<i64> {
    let mut owners = geometry.owners.clone();
    owners.number_paths(0);
    let ids: BTreeSet<i64> = owners.ids().into_iter().flatten().copied().collect();
    ids.into_iter().collect()
}

fn half(ids: &[i64]) -> Vec<i64> {
    ids.iter().copied().step_by(2).collect()
}
