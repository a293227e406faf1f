//! Random queries that match part of a store.

use std::fmt::Write;

use zvf_catalog::{Scope, Selection};
use zvf_model::grid::ChunkCoord;
use zvf_query::{
    Clip, Query, Region,
    geometry::{Bbox, Mode, Position, Sphere, squared_distance_to_point},
    predicate::Predicate,
};
use zvf_testkit::stores::{ExpectedAttribute, ExpectedStore, ExpectedValues, Random};

use super::filter::{all_attributes, attributes, value};

/// Returns a random query.
pub(super) fn random_query(truth: &ExpectedStore, random: &mut Random) -> Query {
    let mut query = Query::new();
    let by_chunk = random.chance(20);
    if !by_chunk {
        query.mode = *random.pick(&Mode::ALL);
        // The default, or the mode of the region, as `Query::mode` sets it.
        if random.chance(50) {
            query.predicate_mode = query.mode;
        }
    }
    if random.chance(30) {
        query.clip = Clip::Drop;
    }
    if random.chance(65) && !by_chunk && !truth.vertices.is_empty() {
        query.region = Some(region(truth, random));
    }
    // Spheres do not clip.
    if matches!(query.region, Some(Region::Sphere(_))) {
        query.clip = Clip::Drop;
    }
    if random.chance(30) && !by_chunk {
        query.filter = filter(truth, random);
    }
    let objects = truth.objects.as_deref().unwrap_or_default();
    if random.chance(20) && !objects.is_empty() {
        let ids = (0..random.below(8)).map(|_| random.pick(objects).id);
        query.objects = Some(ids.collect());
    }
    if let Some(groups) = &truth.groups
        && random.chance(12)
    {
        let group = random.below(groups.len());
        query.groups = Some(vec![u64::try_from(group).unwrap()]);
    }
    if by_chunk || random.chance(8) {
        query.chunks = Some(chunks(truth, random));
    }
    if let Some((_, values)) = &truth.chunked_by
        && random.chance(30)
    {
        let value = if random.chance(85) {
            *random.pick(values)
        } else {
            1000
        };
        query.chunked_by = Some(value.into());
    }
    if random.chance(15) && !truth.vertices.is_empty() {
        let place = if random.chance(50) {
            random.pick(&truth.vertices).position.clone()
        } else {
            somewhere(truth, random)
        };
        query = query.nearest(Position::new(&place).unwrap(), random.below(10));
    }
    if random.chance(20) {
        query.limit = Some(u64::try_from(random.below(30)).unwrap());
    }
    if random.chance(30) {
        query.columns = columns(truth, random);
    }
    let by_object = query.objects.is_some() || query.groups.is_some();
    query.owners = by_object || !random.chance(20);
    query
}

/// Returns a position near vertices.
fn somewhere(truth: &ExpectedStore, random: &mut Random) -> Vec<f64> {
    let axes = 0..truth.axes.len();
    axes.map(|axis| {
        let near = random.pick(&truth.vertices).position[axis];
        let extent = truth.chunk_shape[axis];
        match random.below(4) {
            0 => near,
            1 => (near / extent).round() * extent,
            2 => near + extent / 2.0,
            _ => near + (random.unit() - 0.5) * extent,
        }
    })
    .collect()
}

fn region(truth: &ExpectedStore, random: &mut Random) -> Region {
    if random.chance(25) {
        let centre = somewhere(truth, random);
        let other = &random.pick(&truth.vertices).position;
        let radius = match random.below(4) {
            0 => 0.0,
            1 => truth.chunk_shape[0],
            _ => squared_distance_to_point(&centre, other).sqrt(),
        };
        return Sphere::new(&centre, radius).unwrap().into();
    }
    let (mut lo, mut hi) = (somewhere(truth, random), somewhere(truth, random));
    for (axis, (lo, hi)) in lo.iter_mut().zip(&mut hi).enumerate() {
        if lo > hi && !random.chance(2) {
            std::mem::swap(lo, hi);
        }
        match random.below(12) {
            0 => *lo = f64::NEG_INFINITY,
            1 => *hi = f64::INFINITY,
            2 => *hi = *lo,
            3..=6 => *hi += truth.chunk_shape[axis],
            7..=8 => {
                *lo -= truth.chunk_shape[axis];
                *hi += truth.chunk_shape[axis];
            }
            _ => {}
        }
    }
    Bbox::new(&lo, &hi).unwrap().into()
}

fn chunks(truth: &ExpectedStore, random: &mut Random) -> Vec<ChunkCoord> {
    let mut chunks: Vec<Vec<i64>> = truth.chunks().into_iter().map(<[i64]>::to_vec).collect();
    random.shuffle(&mut chunks);
    let fewer = random.below(chunks.len() + 1);
    chunks.truncate(fewer.max(random.below(chunks.len() + 1)));
    if let Some(first) = truth.chunks().first()
        && random.chance(20)
    {
        // A chunk that does not exist.
        chunks.push(first.iter().map(|_| 77).collect());
    }
    chunks.into_iter().map(ChunkCoord::new).collect()
}

fn columns(truth: &ExpectedStore, random: &mut Random) -> Selection {
    let mut named: Vec<(Option<Scope>, String)> = attributes(truth)
        .into_iter()
        .map(|(scope, attribute)| (Some(scope), attribute.name.clone()))
        .collect();
    random.shuffle(&mut named);
    named.truncate(random.below(named.len() + 1));
    for (scope, _) in &mut named {
        if random.chance(30) {
            *scope = None;
        }
    }
    Selection::Named(named)
}

/// Returns a predicate on links, or on objects, or on vertices and their owners; `None` if the
/// store has none of these.
fn filter(truth: &ExpectedStore, random: &mut Random) -> Option<Predicate> {
    let all = all_attributes(truth);
    let parts: Vec<String> = (0..=random.below(2))
        .filter_map(|_| {
            let scopes = match random.below(7) {
                0 if truth.recipe.kind.is_linked() => vec![Scope::Link],
                1 => vec![Scope::Object],
                2 => vec![Scope::Vertex, Scope::Fragment, Scope::Object],
                3 => vec![Scope::Group],
                _ => vec![Scope::Vertex, Scope::Fragment],
            };
            // An old store does not record the number of channels of an attribute without values.
            let known: Vec<(Scope, &ExpectedAttribute)> = all
                .iter()
                .filter(|(scope, attribute)| {
                    scopes.contains(scope) && attribute.missing.contains(&false)
                })
                .copied()
                .collect();
            if known.is_empty() {
                return None;
            }
            let mut text = test(random.pick(&known), random);
            if random.chance(30) {
                let word = if random.chance(50) { "and" } else { "or" };
                let other = test(random.pick(&known), random);
                text = format!("({text} {word} {other})");
            }
            Some(if random.chance(15) {
                format!("not ({text})")
            } else {
                text
            })
        })
        .collect();
    let text = parts.join(" and ");
    (!text.is_empty()).then(|| Predicate::parse(&text).unwrap())
}

fn test((scope, attribute): &(Scope, &ExpectedAttribute), random: &mut Random) -> String {
    let mut name = attribute.name.clone();
    if random.chance(50) {
        name = format!("{}.{name}", scope.name());
    }
    if random.chance(12) {
        let channel = if columns_of(attribute) > 1 { "[0]" } else { "" };
        let not = if random.chance(50) { "not " } else { "" };
        return format!("{name}{channel} is {not}null");
    }
    let symbol = *random.pick(&["=", "!=", "<", "<=", ">", ">="]);
    match &attribute.values {
        ExpectedValues::Words { words, .. } => {
            let word = random.pick(words);
            format!("{name} {symbol} '{word}'")
        }
        ExpectedValues::Numbers { kind, columns, .. } => {
            if *kind == zvf_format::numeric::Kind::Bool {
                return if random.chance(50) {
                    name
                } else {
                    format!("not {name}")
                };
            }
            let rows = attribute.missing.len();
            let channel = u32::try_from(random.below(usize::try_from(*columns).unwrap())).unwrap();
            if *columns > 1 {
                write!(name, "[{channel}]").unwrap();
            }
            let mut number = || match random.below(rows) {
                _ if rows == 0 => "0".to_owned(),
                row if attribute.missing[row] => "0".to_owned(),
                row => match value(attribute, row, channel) {
                    zvf_format::numeric::Value::Int(value) => value.to_string(),
                    zvf_format::numeric::Value::UInt(value) => value.to_string(),
                    zvf_format::numeric::Value::Float(value) => format!("{value:?}"),
                    other => panic!("{other:?}"),
                },
            };
            let (a, b) = (number(), number());
            match random.below(8) {
                0 => format!("{name} between {a} and {b}"),
                1 => format!("{name} in ({a}, {b})"),
                _ => format!("{name} {symbol} {a}"),
            }
        }
    }
}

fn columns_of(attribute: &ExpectedAttribute) -> u32 {
    match &attribute.values {
        ExpectedValues::Numbers { columns, .. } => *columns,
        ExpectedValues::Words { .. } => 1,
    }
}
