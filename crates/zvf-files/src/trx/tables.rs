//! Arrays that are read whole: offsets, values of streamlines, groups.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use zvf::{Column, Geometry, GeometryBuilder, NumericColumn, numeric::Kind};

use super::{
    archive::{ArrayName, TrxArchive, is_json},
    array::converted,
};
use crate::{FileError, FileFault, FileHeader, names::AttributeNames, reader::ids_of};

/// Tables of streamlines and groups, and what the header keeps about them.
#[derive(Debug)]
pub(super) struct TrxTables {
    pub(super) geometry: GeometryBuilder,
    pub(super) header: FileHeader,
}

/// Reads `count` rows of an array.
pub(super) fn rows(
    archive: &TrxArchive,
    path: &str,
    array: &ArrayName,
    count: Option<u64>,
) -> Result<NumericColumn, FileError> {
    let length = archive.length(path);
    let row = array.row_size();
    // Programs write one byte for an empty array, because an empty file cannot be mapped.
    let is_empty = length == 1 && row > 1;
    let found = if is_empty {
        0
    } else {
        length.checked_div(row).unwrap_or(0)
    };
    let is_whole = is_empty || length.checked_rem(row) == Some(0);
    let expected = count.unwrap_or(found);
    if !is_whole || found != expected {
        let what = "rows of an array, by the header";
        return Err(archive.error(
            path,
            FileFault::Count {
                what,
                found,
                expected,
            },
        ));
    }
    let mut column = NumericColumn::new(array.kind, array.width);
    if !is_empty {
        column.bytes = archive.bytes(path)?;
    }
    Ok(column)
}

/// Reads `dps`, `groups` and `dpg`.
pub(super) fn read(archive: &TrxArchive, streamlines: u64) -> Result<TrxTables, FileError> {
    let mut geometry = Geometry::builder(NumericColumn::new(Kind::Float32, 3));
    let mut header = FileHeader::new();
    let mut types = Map::new();
    let mut names = AttributeNames::default();
    let mut groups: Vec<String> = Vec::new();
    let mut of_groups: BTreeMap<String, Vec<(String, NumericColumn)>> = BTreeMap::new();
    for path in archive.names() {
        let parts: Vec<&str> = path.split('/').collect();
        // Other files beside the arrays have no meaning for readers.
        let file = parts.last().copied().unwrap_or_default();
        if is_json(file) {
            continue;
        }
        let array = || {
            ArrayName::parse(file).ok_or_else(|| {
                let expected = "arrays are named NAME.TYPE or NAME.COLUMNS.TYPE";
                archive.error(
                    &path,
                    FileFault::field("the name of an array", &path, expected),
                )
            })
        };
        match parts.as_slice() {
            ["dps", _] => {
                let array = array()?;
                let column = rows(archive, &path, &array, Some(streamlines))?;
                let name = names.add(&array.name);
                let (column, is_wider) = with_absent_value(column);
                if array.is_bit || is_wider {
                    let kind = if array.is_bit {
                        "bit"
                    } else {
                        array.kind.name()
                    };
                    types.insert(format!("dps/{name}"), kind.into());
                }
                geometry.object.push(Column::new(name, column));
            }
            ["groups", _] => {
                let array = array()?;
                let number = u32::try_from(groups.len()).unwrap_or(u32::MAX);
                let members = rows(archive, &path, &array, None)?;
                let members = member_ids(&members, streamlines)
                    .map_err(|fault| archive.error(&path, fault))?;
                geometry.groups.insert(number, members);
                groups.push(array.name);
            }
            ["dpg", group, _] => {
                let array = array()?;
                let column = rows(archive, &path, &array, Some(1))?;
                let all = of_groups.entry(array.name.clone()).or_default();
                all.push(((*group).to_owned(), column));
            }
            _ => {}
        }
    }
    if !geometry.object.is_empty() || !groups.is_empty() {
        let rows = usize::try_from(streamlines).unwrap_or(usize::MAX);
        geometry.objects = Some(ids_of(&vec![(); rows]));
    }
    names.record(&mut header, "object_names");
    if !groups.is_empty() {
        let rows = groups.iter().map(|name| Some(name.clone()));
        geometry.group.push(Column::text("name", rows));
    }
    add_group_values(archive, &mut geometry, &mut header, &groups, of_groups)?;
    if !types.is_empty() {
        header.insert("types".to_owned(), types.into());
    }
    Ok(TrxTables { geometry, header })
}

/// Widens bytes that use all their values: a table needs a value for objects without one.
fn with_absent_value(column: NumericColumn) -> (NumericColumn, bool) {
    let mut used = [false; 256];
    for byte in &column.bytes {
        if let Some(used) = used.get_mut(usize::from(*byte)) {
            *used = true;
        }
    }
    let is_full = used.iter().all(|used| *used);
    let width = column.width;
    match column.kind {
        Kind::UInt8 if is_full => {
            let values = column.bytes.iter().map(|byte| u16::from(*byte));
            (NumericColumn::from_values(width, values), true)
        }
        Kind::Int8 if is_full => {
            let values = column
                .bytes
                .iter()
                .map(|byte| i16::from(byte.cast_signed()));
            (NumericColumn::from_values(width, values), true)
        }
        _ => (column, false),
    }
}

/// Converts numbers of streamlines to object ids.
fn member_ids(column: &NumericColumn, streamlines: u64) -> Result<Vec<i64>, FileFault> {
    let ids: Option<Vec<i64>> = match column.kind {
        Kind::UInt32 => column
            .to_vec::<u32>()
            .map(|ids| ids.into_iter().map(i64::from).collect()),
        Kind::Int64 => column.to_vec::<i64>(),
        Kind::UInt64 => column.to_vec::<u64>().map(|ids| {
            ids.into_iter()
                .map(|id| i64::try_from(id).unwrap_or(i64::MAX))
                .collect()
        }),
        Kind::Int32 => column
            .to_vec::<i32>()
            .map(|ids| ids.into_iter().map(i64::from).collect()),
        _ => None,
    };
    let Some(ids) = ids else {
        let expected = "members of groups are uint32";
        return Err(FileFault::field(
            "the type of a group",
            column.kind.name(),
            expected,
        ));
    };
    let is_inside = |id: &i64| u64::try_from(*id).is_ok_and(|id| id < streamlines);
    match ids.iter().find(|id| !is_inside(id)) {
        None => Ok(ids),
        Some(id) => {
            let expected = "members of groups are numbers of streamlines";
            Err(FileFault::field("a member of a group", id, expected))
        }
    }
}

/// Adds attributes of groups.
fn add_group_values(
    archive: &TrxArchive,
    geometry: &mut GeometryBuilder,
    header: &mut FileHeader,
    groups: &[String],
    values: BTreeMap<String, Vec<(String, NumericColumn)>>,
) -> Result<(), FileError> {
    let mut names = AttributeNames::default();
    names.add("name");
    let mut pairs = Map::new();
    for (original, of_groups) in values {
        let name = names.add(&original);
        let first = of_groups
            .first()
            .map(|(_, column)| (column.kind, column.width));
        let Some((kind, width)) = first else {
            continue;
        };
        let is_complete = of_groups.len() == groups.len();
        let Some((kind, rows)) = in_one_kind(kind, is_complete, &of_groups) else {
            let (group, _) = of_groups.into_iter().next().unwrap_or_default();
            let path = format!("dpg/{group}/{original}");
            let (found, expected) = (
                "rounded by float64",
                "give all groups a value, in one type of integers",
            );
            let fault = FileFault::field("an attribute of groups", found, expected);
            return Err(archive.error(&path, fault));
        };
        let mut column = NumericColumn::new(kind, width);
        let size = column.row_size().saturating_mul(groups.len());
        let missing = kind.nan().unwrap_or(&[0]).iter().copied();
        column.bytes = missing.cycle().take(size).collect();
        let mut types = Map::new();
        for ((group, row), bytes) in of_groups.into_iter().zip(rows) {
            let path = format!("dpg/{group}/{original}");
            let Some(number) = groups.iter().position(|name| *name == group) else {
                let expected = "every folder of dpg has a group of this name";
                return Err(archive.error(&path, FileFault::field("a folder", &group, expected)));
            };
            if row.width != width {
                let expected = "one attribute has equal columns in all groups";
                return Err(
                    archive.error(&path, FileFault::field("the columns", row.width, expected))
                );
            }
            types.insert(group, json!(row.kind.name()));
            let start = number.saturating_mul(column.row_size());
            for (target, byte) in column.bytes.iter_mut().skip(start).zip(bytes) {
                *target = byte;
            }
        }
        pairs.insert(name.clone(), Value::Object(types));
        geometry.group.push(Column::new(name, column));
    }
    if !pairs.is_empty() {
        header.insert("dpg".to_owned(), pairs.into());
    }
    names.record(header, "group_names");
    Ok(())
}

/// Returns the values that groups have for an attribute in one type, which holds them exactly: their
/// own, otherwise float64, or integers of 64 bits. Groups without the attribute need a type with NaN.
fn in_one_kind(
    kind: Kind,
    is_complete: bool,
    of_groups: &[(String, NumericColumn)],
) -> Option<(Kind, Vec<Vec<u8>>)> {
    let is_one_kind = of_groups.iter().all(|(_, column)| column.kind == kind);
    let own = Some(kind).filter(|_| is_one_kind);
    let wide = [Kind::Float64, Kind::UInt64, Kind::Int64];
    let mut kinds = own
        .into_iter()
        .chain(wide)
        .filter(|kind| is_complete || kind.nan().is_some());
    kinds.find_map(|kind| {
        let values = of_groups.iter().map(|(_, column)| converted(column, kind));
        Some((kind, values.collect::<Option<_>>()?))
    })
}
