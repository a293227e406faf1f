//! What a level is to be.

use std::collections::BTreeMap;

use zvf_build::{
    ShardingPolicy,
    coarsen::{Aggregation, CoarsenMethod, Sparsity},
};
use zvf_format::numeric::Kind;

use crate::failure::Failure;

/// A level of a pyramid.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelDesign {
    /// Which vertices become one.
    pub method: CoarsenMethod,
    /// How many chunks of the level before make one along each axis.
    pub chunk_scale: Vec<u32>,
    /// Which objects are kept; all when not said.
    pub sparsity: Option<ObjectSelection>,
    /// Whether the level is one of several that hold each point once. All of them are
    /// made of level 0, and their chunks are counted in those.
    pub additive: bool,
    /// How many of its cells go in one object; as many as of the level that it is made of
    /// when not said.
    pub sharding: Option<ShardingPolicy>,
}

/// Which objects a level keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectSelection {
    /// How many, and which.
    pub sparsity: Sparsity,
    /// The attribute of objects that [`Strategy::Attribute`] goes by.
    ///
    /// [`Strategy::Attribute`]: zvf_build::coarsen::Strategy::Attribute
    pub attribute: Option<String>,
}

/// A level, and what becomes of attributes.
pub(super) struct Coarsening {
    pub(super) rules: BTreeMap<String, Aggregation>,
    /// Whether values of the level before were made by the same rules.
    pub(super) is_again: bool,
}

impl Coarsening {
    /// What becomes of the values of an attribute.
    pub(super) fn rule(
        &self,
        name: &str,
        kind: Kind,
        columns: Option<usize>,
        is_coded: bool,
        keeps: bool,
    ) -> Result<Aggregation, Failure> {
        let rule = self.rules.get(name).copied();
        let rule = rule.unwrap_or_else(|| {
            Aggregation::default_for(kind, columns.unwrap_or(1), is_coded, keeps)
        });
        if is_coded && !rule.suits_codes() {
            return Err(Failure::NoPyramid {
                why: "the values of an attribute are words, of which there is no mean, sum, least or \
                      greatest: use own, mode or count",
            });
        }
        Ok(if self.is_again { rule.again() } else { rule })
    }
}
