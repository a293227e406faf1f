//! Properties of segments as attributes of objects.

use std::{collections::HashMap, path::PathBuf};

use zvf::{Column, NumericColumn, numeric::Kind};
use zvf_precomputed::{SegmentProperties, SegmentProperty, SegmentPropertyValues};

use super::{
    properties::{original_name, whole},
    source::{PrecomputedSource, document},
};
use crate::{
    FileDescription, FileError, FileFault, library, names::AttributeNames, values::narrow,
};

/// Reads the properties of the objects with these ids. `own` is the folder that the document of the
/// source names.
pub(super) fn columns(
    source: &PrecomputedSource,
    own: Option<&str>,
    ids: &[i64],
    names: &mut AttributeNames,
    description: &mut FileDescription,
) -> Result<Vec<Column>, FileError> {
    let Some((folder, bytes)) = read(source, own, description)? else {
        return Ok(Vec::new());
    };
    let in_file = |fault: FileFault| fault.of(&folder.join("info"));
    let properties =
        SegmentProperties::parse(&bytes).map_err(|error| in_file(library::info(error)))?;
    let rows: HashMap<u64, usize> = properties
        .ids
        .iter()
        .zip(0_usize..)
        .map(|(id, row)| (*id, row))
        .collect();
    let row_of = |id: &i64| {
        u64::try_from(*id)
            .ok()
            .and_then(|id| rows.get(&id).copied())
    };
    let order: Vec<Option<usize>> = ids.iter().map(row_of).collect();
    let others = rows.len().saturating_sub(order.iter().flatten().count());
    if others > 0 {
        description.notes.push(format!(
            "properties of {others} segments without geometry are left out"
        ));
    }
    let mut columns = Vec::with_capacity(properties.properties.len());
    let properties = without_repeated_tags(properties.properties);
    for property in &properties {
        let text = property
            .description
            .as_deref()
            .filter(|text| !text.is_empty());
        let original = original_name(&property.id, text);
        let name = names.add(original);
        if let Some(text) = text.filter(|text| *text != original) {
            description.describe("object", &name, text);
        }
        columns.push(column(name, property, &order).map_err(in_file)?);
    }
    names.record(&mut description.header, "object_names");
    Ok(columns)
}

/// Drops tags that repeat a value of a text property, as `kind:axon`, which an export writes.
fn without_repeated_tags(mut properties: Vec<SegmentProperty>) -> Vec<SegmentProperty> {
    let prefixes: Vec<String> = properties
        .iter()
        .filter(|property| {
            let values = &property.values;
            matches!(
                values,
                SegmentPropertyValues::Label(_) | SegmentPropertyValues::Text(_)
            )
        })
        .map(|property| {
            let name = property.description.as_deref().unwrap_or(&property.id);
            let words: Vec<&str> = name.split_whitespace().collect();
            format!("{}:", words.join("_"))
        })
        .collect();
    properties.retain_mut(|property| {
        let SegmentPropertyValues::Tags { tags, values, .. } = &mut property.values else {
            return true;
        };
        let is_repeated = |tag: &u32| {
            let tag = usize::try_from(*tag).ok().and_then(|tag| tags.get(tag));
            tag.is_some_and(|tag| prefixes.iter().any(|prefix| tag.starts_with(prefix)))
        };
        for own in &mut *values {
            own.retain(|tag| !is_repeated(tag));
        }
        values.iter().any(|own| !own.is_empty())
    });
    properties
}

/// Reads the document; `None` if there is none.
fn read(
    source: &PrecomputedSource,
    own: Option<&str>,
    description: &mut FileDescription,
) -> Result<Option<(PathBuf, Vec<u8>)>, FileError> {
    let folder = match own {
        None => source.outer_properties.clone(),
        Some(own) => match source.folder_of(own) {
            Ok(folder) => Some(folder),
            Err(_) => source.outer_properties.clone(),
        },
    };
    let found = match &folder {
        None => None,
        Some(folder) => document(folder)?,
    };
    match (folder, found, own) {
        (Some(folder), Some((bytes, _)), _) => Ok(Some((folder, bytes))),
        (_, _, Some(own)) => {
            description.notes.push(format!(
                "properties of segments are left out: {own:?} is not a folder with them below the source"
            ));
            Ok(None)
        }
        _ => Ok(None),
    }
}

/// Returns the values of a property for objects in the given rows.
fn column(
    name: String,
    property: &SegmentProperty,
    order: &[Option<usize>],
) -> Result<Column, FileFault> {
    Ok(match &property.values {
        SegmentPropertyValues::Label(texts)
        | SegmentPropertyValues::Description(texts)
        | SegmentPropertyValues::Text(texts) => {
            let text = |row: &Option<usize>| texts.get((*row)?).filter(|text| !text.is_empty());
            Column::text(name, order.iter().map(text))
        }
        SegmentPropertyValues::Number { data_type, values } => {
            let mut kinds = Kind::ALL.into_iter();
            let kind = kinds.find(|kind| kind.name() == data_type);
            let mut numbers = NumericColumn::new(kind.unwrap_or(Kind::Float32), 1);
            for row in order {
                let value = row.and_then(|row| values.get(row).copied());
                put(value, &mut numbers)?;
            }
            let nulls: Vec<bool> = order.iter().map(Option::is_none).collect();
            let mut column = Column::new(name, numbers);
            column.nulls = Some(nulls).filter(|nulls| nulls.contains(&true));
            column
        }
        SegmentPropertyValues::Tags { tags, values, .. } => {
            let tags_of = |row: &Option<usize>| {
                let own: Vec<&str> = values
                    .get((*row)?)?
                    .iter()
                    .filter_map(|tag| tags.get(usize::try_from(*tag).ok()?))
                    .map(String::as_str)
                    .collect();
                Some(own.join(" ")).filter(|text| !text.is_empty())
            };
            Column::text(name, order.iter().map(tags_of))
        }
        _ => {
            return Err(FileFault::Unsupported(
                "a property of segments has an unknown form",
            ));
        }
    })
}

/// Appends a number in the kind of a column; 0 or NaN stands for no value.
fn put(value: Option<f64>, to: &mut NumericColumn) -> Result<(), FileFault> {
    let outside = || {
        let expected = "the value is not one of its data type; write the properties again";
        FileFault::field("a property of segments", value.unwrap_or(0.0), expected)
    };
    if to.kind == Kind::Float32 {
        let number = value.map_or(f32::NAN, narrow);
        to.bytes.extend_from_slice(&number.to_le_bytes());
        return Ok(());
    }
    let number = whole(value.unwrap_or(0.0)).ok_or_else(outside)?;
    let bytes = &mut to.bytes;
    let fits = match to.kind {
        Kind::Int8 => i8::try_from(number).map(|n| bytes.extend_from_slice(&n.to_le_bytes())),
        Kind::UInt8 => u8::try_from(number).map(|n| bytes.extend_from_slice(&n.to_le_bytes())),
        Kind::Int16 => i16::try_from(number).map(|n| bytes.extend_from_slice(&n.to_le_bytes())),
        Kind::UInt16 => u16::try_from(number).map(|n| bytes.extend_from_slice(&n.to_le_bytes())),
        Kind::Int32 => i32::try_from(number).map(|n| bytes.extend_from_slice(&n.to_le_bytes())),
        _ => u32::try_from(number).map(|n| bytes.extend_from_slice(&n.to_le_bytes())),
    };
    fits.map_err(|_| outside())
}
