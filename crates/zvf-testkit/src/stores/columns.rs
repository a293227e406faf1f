//! Random attributes of every scope, and groups.

use zvf_format::numeric::Kind as Number;

use super::{
    ExpectedAttribute, ExpectedStore, ExpectedValues, RecipeProfile, numbers::whole, random::Random,
};

/// Adds attributes and groups to content without them.
pub(super) fn add(truth: &mut ExpectedStore, random: &mut Random) {
    let profile = truth.recipe.profile;
    let rows = truth.vertices.len();
    truth.vertex_attributes = vertex(rows, profile, random);
    if profile >= RecipeProfile::V080 {
        truth.fragment_attributes = fragment(truth.fragments.len(), random);
    }
    if truth.recipe.kind.is_linked() {
        truth.link_attributes = link(truth, random);
    }
    let Some(objects) = &truth.objects else {
        return;
    };
    let ids: Vec<i64> = objects.iter().map(|object| object.id).collect();
    truth.object_attributes = object(ids.len(), random);
    if random.chance(70) && !ids.is_empty() {
        let groups = groups(&ids, random);
        let weights = (0..groups.len())
            .map(|_| quarter(random))
            .flat_map(f64::to_le_bytes)
            .collect();
        truth.group_attributes = vec![ExpectedAttribute::numbers(
            "share",
            Number::Float64,
            1,
            weights,
        )];
        truth.groups = Some(groups);
    }
}

fn vertex(rows: usize, profile: RecipeProfile, random: &mut Random) -> Vec<ExpectedAttribute> {
    let mut columns = Vec::new();
    if random.chance(80) {
        columns.push(floats("radius", rows, 1, random));
    }
    if random.chance(60) {
        let serials = (0..rows).map(|row| i64::try_from(row).unwrap_or(0) - (1 << 53));
        let bytes = serials.flat_map(i64::to_le_bytes).collect();
        columns.push(ExpectedAttribute::numbers(
            "serial",
            Number::Int64,
            1,
            bytes,
        ));
    }
    if random.chance(50) {
        let bytes = (0..rows).map(|_| u8::from(random.chance(50))).collect();
        columns.push(ExpectedAttribute::numbers("soma", Number::Bool, 1, bytes));
    }
    if random.chance(50) {
        let bytes = (0..rows * 3).map(|_| byte(random)).collect();
        columns.push(ExpectedAttribute::numbers("rgb", Number::UInt8, 3, bytes));
    }
    // Dictionaries exist since 0.7.
    if profile != RecipeProfile::V06 && random.chance(60) {
        let all = ["axon", "dendrite", "soma", "Ästchen"];
        let words: Vec<String> = all[..=random.below(4)]
            .iter()
            .map(ToString::to_string)
            .collect();
        let codes: Vec<u32> = (0..rows)
            .map(|_| u32::try_from(random.below(words.len())).unwrap_or(0))
            .collect();
        let some = random.chance(60);
        let missing = (0..rows).map(|_| some && random.chance(25)).collect();
        let values = ExpectedValues::Words { codes, words };
        columns.push(ExpectedAttribute {
            name: "part".to_owned(),
            values,
            missing,
        });
    }
    columns
}

fn fragment(rows: usize, random: &mut Random) -> Vec<ExpectedAttribute> {
    let mut columns = Vec::new();
    if random.chance(50) {
        let bytes = (0..rows).flat_map(|_| random.any().to_le_bytes()).collect();
        columns.push(ExpectedAttribute::numbers(
            "segment_id",
            Number::UInt64,
            1,
            bytes,
        ));
    }
    if random.chance(50) {
        columns.push(floats("quality", rows, 1, random));
    }
    columns
}

fn link(truth: &ExpectedStore, random: &mut Random) -> Vec<ExpectedAttribute> {
    let rows = truth.links.len();
    let mut columns = Vec::new();
    if random.chance(70) {
        columns.push(floats("weight", rows, 1, random));
    }
    if random.chance(50) {
        let numbers = (0..rows * 2).map(|_| random.between(-9, 9));
        let bytes = numbers.flat_map(|n| i32::try_from(n).unwrap_or(0).to_le_bytes());
        columns.push(ExpectedAttribute::numbers(
            "flow",
            Number::Int32,
            2,
            bytes.collect(),
        ));
    }
    for column in &mut columns {
        let stored = truth.links.iter().map(|link| link.stored);
        column.missing = stored.map(|stored| !stored).collect();
    }
    columns
}

/// Returns attributes of objects. Absent rows have the sentinel value.
fn object(rows: usize, random: &mut Random) -> Vec<ExpectedAttribute> {
    let mut columns = Vec::new();
    if random.chance(70) {
        columns.push(floats("score", rows, 1, random));
    }
    if random.chance(50) {
        let numbers = (0..rows).map(|_| random.between(-5, 5));
        let bytes = numbers.flat_map(|n| i32::try_from(n).unwrap_or(0).to_le_bytes());
        columns.push(ExpectedAttribute::numbers(
            "tag",
            Number::Int32,
            1,
            bytes.collect(),
        ));
    }
    if random.chance(40) {
        let bytes = (0..rows).map(|_| byte(random)).collect();
        columns.push(ExpectedAttribute::numbers("hue", Number::UInt8, 1, bytes));
    }
    if random.chance(40) {
        columns.push(floats("direction", rows, 3, random));
    }
    for column in &mut columns {
        let some = random.chance(60);
        column.missing.fill_with(|| some && random.chance(25));
        let ExpectedValues::Numbers {
            kind,
            columns,
            bytes,
        } = &mut column.values
        else {
            continue;
        };
        let size = kind.size() * usize::try_from(*columns).unwrap_or(1);
        for (row, missing) in bytes.chunks_mut(size).zip(&column.missing) {
            if *missing {
                row.copy_from_slice(&absent(*kind).repeat(size / kind.size()));
            }
        }
    }
    columns
}

/// Returns the stored form of an absent value.
pub(super) fn absent(kind: Number) -> Vec<u8> {
    match kind {
        Number::Float32 => f32::NAN.to_le_bytes().to_vec(),
        Number::Int32 => i32::MIN.to_le_bytes().to_vec(),
        kind => vec![0xff; kind.size()],
    }
}

fn groups(ids: &[i64], random: &mut Random) -> Vec<Vec<i64>> {
    let group = |random: &mut Random| match random.below(4) {
        0 => Vec::new(),
        1 => {
            let start = random.between(0, 3);
            let run = start..start + random.between(1, 4);
            run.filter(|id| ids.contains(id)).collect()
        }
        _ => {
            let mut members = ids.to_vec();
            random.shuffle(&mut members);
            members.truncate(random.below(members.len() + 1));
            members
        }
    };
    (0..=random.below(4)).map(|_| group(random)).collect()
}

pub(super) fn floats(
    name: &str,
    rows: usize,
    columns: u32,
    random: &mut Random,
) -> ExpectedAttribute {
    let count = rows * usize::try_from(columns).unwrap_or(1);
    let bytes = (0..count).flat_map(|_| narrow(quarter(random)).to_le_bytes());
    ExpectedAttribute::numbers(name, Number::Float32, columns, bytes.collect())
}

fn quarter(random: &mut Random) -> f64 {
    whole(random.between(-40, 40)) / 4.0
}

#[expect(clippy::cast_possible_truncation, reason = "quarters are exact")]
fn narrow(value: f64) -> f32 {
    value as f32
}

fn byte(random: &mut Random) -> u8 {
    // 255 is the sentinel for absent values.
    u8::try_from(random.below(255)).unwrap_or(0)
}
