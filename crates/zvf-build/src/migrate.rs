//! Stores of one generation as stores of another: what nodes say there, where cells
//! go, and in which form. Whoever reads the one and writes the other calls these
//! part by part, so that no store is ever held whole.
//!
//! Payloads of vertices, attributes, fragment indexes and manifests are the same in
//! all generations from 0.6 on; [`Form::part`] and [`Form::cell`] put them in the
//! containers of the target. Links are filed anew by [`LinkForm`]. Tables come by
//! [`Form::object_index`] and its like. [`Bridges`] are what writers of paths should have
//! stored.

mod bridges;
mod links;
mod nodes;
mod parts;
mod tables;

use serde_json::{Map, Value};

use crate::{
    design::{Compression, Design, Profile},
    geometry::GeometryKind,
    nodes::Encoding,
    refusal::Refusal,
};

pub use bridges::{Bridges, FragmentEnds};
pub use links::{Alongside, Filed, Filing, LinkForm, PlacedLinks};
pub use nodes::{LevelFacts, RootFacts, is_part};
pub use parts::Extent;
pub use tables::TableRows;

/// How a store is written that another becomes.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    profile: Profile,
    cells: Encoding,
    tables: Encoding,
}

/// Something that was put right, or that the new store does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The node in the store that was read.
    pub path: String,
    /// What it is about.
    pub what: &'static str,
    /// How many.
    pub count: u64,
    /// More, where there is more to say.
    pub why: Option<String>,
}

impl Finding {
    /// Of so many things at a node.
    pub fn new(path: impl Into<String>, what: &'static str, count: u64) -> Self {
        Self {
            path: path.into(),
            what,
            count,
            why: None,
        }
    }

    /// With more to say.
    #[must_use]
    pub fn because(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }
}

impl Form {
    /// Stores of a profile; checksums where the profile has them when not said.
    ///
    /// # Errors
    ///
    /// [`Refusal::Profile`] for the padded profile, which cuts cells to one size.
    pub fn new(
        profile: Profile,
        compression: Compression,
        checksum: Option<bool>,
    ) -> Result<Self, Refusal> {
        if profile == Profile::Padded {
            return Err(Refusal::Profile {
                profile: profile.name(),
                what: "place for a store that is migrated",
            });
        }
        let mut design = Design::new(GeometryKind::Points);
        design.profile = profile;
        design.compression = compression;
        design.checksum = checksum;
        Ok(Self {
            profile,
            cells: Encoding::of_cells(&design),
            tables: Encoding::of_tables(&design),
        })
    }

    /// The same, with cells compressed as tables are, which never are plain.
    #[must_use]
    pub fn compressed(&self) -> Self {
        Self {
            cells: self.tables.clone(),
            ..self.clone()
        }
    }

    /// The profile.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Whether it is of 0.9, whose arrays have a cell for each chunk.
    pub fn is_current(&self) -> bool {
        self.profile == Profile::V09
    }
}

/// What a node said, with what is said of it now. What only the container of the
/// source said is left out.
fn overlaid(old: &Map<String, Value>, new: Value) -> Map<String, Value> {
    const OF_CONTAINERS: [&str; 13] = [
        "nonempty_chunks",
        "chunk_grid_origin",
        "shard_index",
        "layout",
        "num_objects",
        "num_present",
        "object_ids_sorted",
        "num_channels",
        "has_present_mask",
        "fill_sentinel_meaning",
        "group_ranges",
        "num_links",
        "num_physical_records",
    ];
    let mut says = crate::plan::says(new);
    for (key, value) in old {
        if !OF_CONTAINERS.contains(&key.as_str()) && !says.contains_key(key) {
            says.insert(key.clone(), value.clone());
        }
    }
    says
}
