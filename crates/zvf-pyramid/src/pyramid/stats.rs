//! The recipe of a level in its metadata.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use zvf_build::{
    ShardingPolicy,
    coarsen::{Aggregation, Amount, CoarsenMethod, Sparsity, Strategy},
};

use zvf_model::{level::RECIPE, metadata::Attributes};

use super::{LevelDesign, ObjectSelection, build::Build};

/// Returns the recipe of a level, from which it can be rebuilt.
pub(super) fn describe(build: &Build<'_>) -> Value {
    let mut attributes = design(build.design, &build.options.rules);
    if let Some(error) = build.tally.error {
        attributes["error"] = json!(error);
    }
    attributes
}

/// Returns whether the recipe in the attributes of a level equals this design.
pub(super) fn is_made(
    level: &Attributes,
    own: &LevelDesign,
    rules: &BTreeMap<String, Aggregation>,
) -> bool {
    // A recipe does not contain what its design leaves to a default.
    recipe(level).is_some_and(|known| design(&known.design, &known.rules) == design(own, rules))
}

/// Returns the greatest distance of a vertex from the level that it represents, if it was measured.
pub(super) fn error(level: &Attributes) -> Option<f64> {
    level.get(RECIPE)?.get("error")?.as_f64()
}

/// Returns the recipe of a design.
pub(super) fn design(own: &LevelDesign, rules: &BTreeMap<String, Aggregation>) -> Value {
    let mut attributes = own.method.record();
    attributes["chunk_scale"] = json!(own.chunk_scale);
    if own.additive {
        attributes["additive"] = json!(true);
    }
    if let Some(kept) = &own.sparsity {
        attributes["sparsity"] = sparsity(kept);
    }
    match &own.sharding {
        Some(ShardingPolicy::None) => attributes["shard"] = json!("none"),
        Some(ShardingPolicy::Auto) => attributes["shard"] = json!("auto"),
        Some(ShardingPolicy::Shape(shape)) => attributes["shard"] = json!(shape),
        // A refresh chooses again.
        None | Some(_) => {}
    }
    let rules: Map<String, Value> = rules
        .iter()
        .map(|(name, rule)| (name.clone(), json!(rule.name())))
        .collect();
    if !rules.is_empty() {
        attributes["attributes"] = Value::Object(rules);
    }
    attributes
}

/// Returns the selection of objects as JSON.
fn sparsity(kept: &ObjectSelection) -> Value {
    let mut attributes = match &kept.sparsity.strategy {
        Strategy::Random { seed } => json!({"by": "random", "seed": seed}),
        Strategy::Length => json!({"by": "length"}),
        Strategy::Coverage => json!({"by": "coverage"}),
        Strategy::Attribute { descending } => {
            json!({"by": "attribute", "name": kept.attribute, "greatest": descending})
        }
        Strategy::PerGroup { seed } => json!({"by": "group", "seed": seed}),
        Strategy::Ids(ids) => json!({"by": "ids", "ids": ids}),
    };
    match kept.sparsity.amount {
        Amount::Share(share) => attributes["share"] = json!(share),
        Amount::Count(count) => attributes["count"] = json!(count),
    }
    attributes
}

/// The recipe of a level.
pub(super) struct Recipe {
    pub(super) design: LevelDesign,
    pub(super) rules: BTreeMap<String, Aggregation>,
}

/// Parses the recipe in the attributes of a level; `None` if there is none, or it is not
/// understood.
pub(super) fn recipe(level: &Attributes) -> Option<Recipe> {
    parse_recipe(level.get(RECIPE)?)
}

/// Parses a recipe; `None` if it is not understood.
pub(super) fn parse_recipe(attributes: &Value) -> Option<Recipe> {
    let scale = attributes.get("chunk_scale")?.as_array()?.iter();
    let scale = scale.map(|scale| u32::try_from(scale.as_u64()?).ok());
    let rules = attributes
        .get("attributes")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, rule)| Some((name.clone(), rule.as_str()?.parse().ok()?)));
    Some(Recipe {
        design: LevelDesign {
            method: CoarsenMethod::of_record(attributes)?,
            chunk_scale: scale.collect::<Option<_>>()?,
            sparsity: match attributes.get("sparsity") {
                Some(attributes) => Some(kept(attributes)?),
                None => None,
            },
            additive: attributes.get("additive").and_then(Value::as_bool) == Some(true),
            sharding: match attributes.get("shard") {
                Some(attributes) => Some(sharding(attributes)?),
                None => None,
            },
        },
        rules: rules.collect::<Option<_>>()?,
    })
}

fn sharding(attributes: &Value) -> Option<ShardingPolicy> {
    match attributes {
        Value::String(name) if name == "none" => Some(ShardingPolicy::None),
        Value::String(name) if name == "auto" => Some(ShardingPolicy::Auto),
        Value::Array(shape) => {
            let shape = shape.iter().map(Value::as_u64);
            shape.collect::<Option<_>>().map(ShardingPolicy::Shape)
        }
        _ => None,
    }
}

fn kept(attributes: &Value) -> Option<ObjectSelection> {
    let seed = || attributes.get("seed").and_then(Value::as_u64);
    let mut attribute = None;
    let strategy = match attributes.get("by")?.as_str()? {
        "random" => Strategy::Random { seed: seed()? },
        "length" => Strategy::Length,
        "coverage" => Strategy::Coverage,
        "attribute" => {
            attribute = Some(attributes.get("name")?.as_str()?.to_owned());
            let descending = attributes.get("greatest")?.as_bool()?;
            Strategy::Attribute { descending }
        }
        "group" => Strategy::PerGroup { seed: seed()? },
        "ids" => {
            let ids = attributes.get("ids")?.as_array()?.iter();
            Strategy::Ids(ids.map(Value::as_i64).collect::<Option<_>>()?)
        }
        _ => return None,
    };
    let amount = match attributes.get("count").and_then(Value::as_u64) {
        Some(count) => Amount::Count(count),
        None => Amount::Share(attributes.get("share")?.as_f64()?),
    };
    Some(ObjectSelection {
        sparsity: Sparsity { amount, strategy },
        attribute,
    })
}
