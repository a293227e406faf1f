//! Levels that a refresh has still to build.
//!
//! A level that is rebuilt whole replaces all coarser levels, and their recipes with them. Until they
//! are built again, the root records the recipes, so that a later refresh builds them: after an
//! interruption, or when a level without vertices, which has no coarser levels, has vertices again.

use serde_json::{Map, Value, json};

use super::{
    LevelDesign, PyramidLevels, PyramidOptions,
    stats::{self, Recipe},
};

/// Attribute of the root: recipes of the levels that a refresh has still to build.
pub(super) const PENDING_LEVELS: &str = "zvf_pending_levels";

/// Returns the record of the levels after `designs[step]`; `None` if none remain, or the build is not
/// recorded.
pub(super) fn after(options: &PyramidOptions, step: usize) -> Option<Value> {
    let PyramidLevels::Explicit(designs) = &options.levels else {
        return None;
    };
    if !options.records_pending {
        return None;
    }
    let rest = designs.get(step + 1..).unwrap_or_default();
    if rest.is_empty() && !options.refinement {
        return None;
    }
    let recipe = |design: &LevelDesign| stats::design(design, &options.rules);
    let recipes: Vec<Value> = rest.iter().map(recipe).collect();
    Some(json!({"recipes": recipes, "refinement": options.refinement}))
}

/// The levels that an interrupted refresh did not build.
pub(super) struct PendingLevels {
    pub(super) recipes: Vec<Recipe>,
    /// True if the levels are to be declared by `refinement: add` once all are built.
    pub(super) refinement: bool,
}

/// Parses the record in the attributes of the root; `None` if there is none, or it is not understood.
pub(super) fn of(root: &Map<String, Value>) -> Option<PendingLevels> {
    let record = root.get(PENDING_LEVELS)?;
    let recipes = record
        .get("recipes")?
        .as_array()?
        .iter()
        .map(stats::parse_recipe);
    Some(PendingLevels {
        recipes: recipes.collect::<Option<_>>()?,
        refinement: record.get("refinement")?.as_bool()?,
    })
}
