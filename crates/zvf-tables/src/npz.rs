//! npz: the interchange arrays as `.npy` files in a zip file, compressed or not.

mod stream;
mod write;

use crate::{FileError, FileFault, FilePlace};

pub use stream::{NpzStream, WholeFile};
pub(crate) use write::write;

use std::{collections::HashMap, fs::File, io::BufReader, path::Path, sync::Arc};

use zip::{CompressionMethod, ZipArchive};
use zvf::{ColumnValues, NumericColumn, Scope, numeric::Kind};
use zvf_model::attribute_name;

use crate::StoreDescription;
use crate::npy::{self, NpyColumn};
use crate::table::{
    ColumnError, GeometryReadOptions, InputFile, MissingPolicy, NpyReadError,
    arrays::{InputGroup, InterchangeArrays, links_of_column},
    column::{FileColumn, NullPolicy, fill_missing},
};

/// Maximum number of bytes that one byte of deflate expands to.
const MAX_DEFLATE_RATIO: u64 = 1032;

const MASK: &str = ".missing";

pub(crate) fn read(
    input: &InputFile,
    options: &GeometryReadOptions,
) -> Result<InterchangeArrays, FileError> {
    let path = input.path();
    if options.links.is_some() {
        return Err(FileFault::LinksInside.of(path));
    }
    let nulls = |label: &str| null_policy(label, options.missing);
    arrays_by_name(path, all_columns(path, nulls)?)
}

/// Reads all arrays except the description, and the description.
pub(crate) fn read_columns(
    path: &Path,
    nulls: NullPolicy,
) -> Result<(Vec<FileColumn>, Option<StoreDescription>), FileError> {
    let mut columns = Vec::new();
    let mut described = None;
    for (column, _) in all_columns(path, |_| nulls)? {
        match column.label.as_str() {
            "metadata" => described = Some(description(path, &column)?),
            _ => columns.push(column),
        }
    }
    Ok((columns, described))
}

/// Reads all arrays and applies their masks. `nulls` returns the policy for an array.
fn all_columns(
    path: &Path,
    nulls: impl Fn(&str) -> NullPolicy,
) -> Result<Vec<ShapedColumn>, FileError> {
    let file: Arc<Path> = path.into();
    let mut arrays = members(path, |_| true)?.into_iter();
    let mut masks = HashMap::new();
    let mut columns = Vec::new();
    for (label, array) in arrays.by_ref() {
        // An attribute may have this name itself; only names with a scope have a mask.
        let of = label.strip_suffix(MASK).filter(|of| of.contains('.'));
        match of {
            Some(of) => {
                masks.insert(of.to_owned(), array);
            }
            None => columns.push((label, array)),
        }
    }
    let mut whole = Vec::new();
    for (label, array) in columns {
        let mask = masks.remove(&label);
        let nulls = nulls(&label);
        whole.push(column(&file, label, array, mask, nulls)?);
    }
    if let Some(of) = masks.into_keys().next() {
        return Err(
            FileFault::Column(ColumnError::Mask).at(path, FilePlace::Column(format!("{of}{MASK}")))
        );
    }
    Ok(whole)
}

/// Reads all arrays except the selection of `leave`, and does not require vertices.
pub(crate) fn read_tables(
    input: &InputFile,
    options: &GeometryReadOptions,
    leave: impl Fn(&str) -> bool,
    axes: u32,
) -> Result<InterchangeArrays, FileError> {
    let path = input.path();
    let file: Arc<Path> = path.into();
    let mut columns = Vec::new();
    let mut masks = HashMap::new();
    for (label, array) in members(path, |label| !leave(label))? {
        match label.strip_suffix(MASK).filter(|of| of.contains('.')) {
            Some(of) => {
                masks.insert(of.to_owned(), array);
            }
            None => columns.push((label, array)),
        }
    }
    let nothing = FileColumn {
        file: Arc::clone(&file),
        label: "positions".to_owned(),
        values: ColumnValues::Numeric(NumericColumn::new(Kind::Float32, axes)),
        nulls: None,
        first_text: None,
    };
    let mut whole = vec![(nothing, 2)];
    for (label, array) in columns {
        let mask = masks.remove(&label);
        let nulls = null_policy(&label, options.missing);
        whole.push(column(&file, label, array, mask, nulls)?);
    }
    arrays_by_name(path, whole)
}

/// Converts an array to ids of objects.
pub(crate) fn ids(path: &Path, label: &str, values: ColumnValues) -> Result<Vec<i64>, FileError> {
    let column = FileColumn {
        file: path.into(),
        label: label.to_owned(),
        values,
        nulls: None,
        first_text: None,
    };
    column.ids()
}

/// Converts an array to the ends of links.
pub(crate) fn ends(path: &Path, values: ColumnValues) -> Result<Vec<i64>, FileError> {
    let column = FileColumn {
        file: path.into(),
        label: "links".to_owned(),
        values,
        nulls: None,
        first_text: None,
    };
    column.integers()
}

/// Returns the treatment of missing numbers of an array of geometry.
fn null_policy(label: &str, missing: MissingPolicy) -> NullPolicy {
    match label.split_once('.') {
        Some(("object", _)) => NullPolicy::of_tables(missing),
        _ => NullPolicy::of_rows(missing),
    }
}

/// A column and its number of dimensions.
type ShapedColumn = (FileColumn, usize);

fn column(
    file: &Arc<Path>,
    label: String,
    array: NpyColumn,
    mask: Option<NpyColumn>,
    policy: NullPolicy,
) -> Result<ShapedColumn, FileError> {
    let dimensions = array.shape.len();
    let mut column = FileColumn {
        file: Arc::clone(file),
        label,
        values: array.values,
        nulls: None,
        first_text: None,
    };
    let missing = match mask.map(|mask| mask.values) {
        None => Vec::new(),
        Some(ColumnValues::Numeric(mask)) if mask.row_size() == 1 => {
            mask.bytes.iter().map(|byte| *byte != 0).collect()
        }
        Some(_) => return Err(column.error(ColumnError::Kind("its mask is not of bools".into()))),
    };
    let is_masked = !missing.is_empty();
    if is_masked && missing.len() != column.values.len() {
        let (expected, found) = (column.values.len(), missing.len());
        return Err(column.error(ColumnError::Rows { expected, found }));
    }
    column.values = match column.values {
        ColumnValues::Numeric(numbers) => {
            let numbers = fill_missing(numbers, &missing, policy);
            let (numbers, nulls) = numbers.map_err(|source| {
                FileFault::Column(source).at(file, FilePlace::Column(column.label.clone()))
            })?;
            column.nulls = nulls;
            ColumnValues::Numeric(numbers)
        }
        // Without a mask, empty text is a missing value.
        texts @ ColumnValues::Dictionary { .. } => {
            let present = texts.texts().enumerate().map(|(row, text)| {
                let is_missing = missing.get(row).copied();
                text.filter(|text| is_missing.map_or(!text.is_empty(), |is| !is))
            });
            ColumnValues::text(present)
        }
    };
    Ok((column, dimensions))
}

/// Assigns columns to arrays by name.
fn arrays_by_name(path: &Path, columns: Vec<ShapedColumn>) -> Result<InterchangeArrays, FileError> {
    let (positions, columns): (Vec<_>, Vec<_>) = columns
        .into_iter()
        .partition(|(column, _)| column.label == "positions");
    let positions = positions.into_iter().next();
    let (positions, dimensions) = positions.ok_or_else(|| {
        let arrays = columns.iter().map(|(column, _)| column.label.clone());
        FileFault::NoPositions(arrays.collect()).of(path)
    })?;
    check_dimensions(&positions, dimensions, 2)?;
    let mut arrays = InterchangeArrays::new(positions.numbers()?.clone());
    drop(positions);
    arrays.files.push(path.to_path_buf());
    for (column, dimensions) in columns {
        let label = column.label.clone();
        if let Some((scope, name)) = label.split_once('.') {
            let scope = match (scope, Scope::parse(scope)) {
                ("group_attribute", _) => Scope::Group,
                (_, Some(Scope::Group)) => {
                    check_dimensions(&column, dimensions, 1)?;
                    arrays.groups.push(InputGroup {
                        name: name.to_owned(),
                        members: column.ids()?,
                        column: Arc::new(column),
                    });
                    continue;
                }
                (_, Some(scope)) => scope,
                _ => return Err(unknown(path, label)),
            };
            let named = column.named(&attribute_name::label(name));
            arrays.columns_mut(scope).push(named);
            continue;
        }
        check_dimensions(&column, dimensions, if label == "links" { 2 } else { 1 })?;
        match label.as_str() {
            "object_ids" => arrays.object_ids = Some(column.ids()?),
            "row_ids" => arrays.row_ids = Some(column),
            "part_offsets" => arrays.part_offsets = Some(column.offsets()?),
            "part_objects" => arrays.part_objects = Some(column.ids()?),
            "objects" => arrays.objects = Some(column.ids()?),
            "links" => arrays.links = Some(links_of_column(&column)?),
            "metadata" => arrays.description = description(path, &column)?,
            _ => return Err(unknown(path, label)),
        }
    }
    Ok(arrays)
}

/// Reads the description of the store, if the file has one.
pub(crate) fn read_description(path: &Path) -> Result<Option<StoreDescription>, FileError> {
    let file: Arc<Path> = path.into();
    let Some((label, array)) = members(path, |label| label == "metadata")?.pop() else {
        return Ok(None);
    };
    let (text, _) = column(
        &file,
        label,
        array,
        None,
        NullPolicy::of_rows(MissingPolicy::Reject),
    )?;
    Ok(Some(description(path, &text)?))
}

/// Parses the description of the store.
fn description(path: &Path, column: &FileColumn) -> Result<StoreDescription, FileError> {
    let description = match column.values.text_at(0) {
        Some(text) => StoreDescription::parse(text),
        None => Err("the array metadata is not text".to_owned()),
    };
    description.map_err(|reason| FileFault::Description(reason).of(path))
}

fn check_dimensions(column: &FileColumn, found: usize, expected: usize) -> Result<(), FileError> {
    if found == expected {
        Ok(())
    } else {
        Err(column.error(ColumnError::Dimensions { expected, found }))
    }
}

fn unknown(path: &Path, array: String) -> FileError {
    FileFault::UnknownArray(array).of(path)
}

/// Offset and length of a member; `None` if it is compressed.
pub(crate) type MemberSpan = Option<(u64, u64)>;

/// Returns the location of each array in the file, by name.
pub(crate) fn member_spans(path: &Path) -> Result<Vec<(String, MemberSpan)>, FileError> {
    let file = File::open(path).map_err(|error| FileError::unreadable(path, error))?;
    let in_zip = |error| FileFault::NotNpz(Box::new(error)).of(path);
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(in_zip)?;
    let mut places = Vec::with_capacity(archive.len());
    for at in 0..archive.len() {
        let member = archive.by_index_raw(at).map_err(in_zip)?;
        let name = member.name().map_err(in_zip)?.into_owned();
        let stored = member.compression() == CompressionMethod::Stored;
        let place = (member.data_start(), member.size());
        if let Some(label) = name.strip_suffix(".npy") {
            let place = match place {
                (Some(start), size) if stored => Some((start, size)),
                _ => None,
            };
            places.push((label.to_owned(), place));
        }
    }
    Ok(places)
}

/// Reads the arrays that `wanted` selects, in the order of the file.
fn members(
    path: &Path,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<(String, NpyColumn)>, FileError> {
    let in_file = |error| FileError::unreadable(path, error);
    let file = File::open(path).map_err(in_file)?;
    let length = file.metadata().map_err(in_file)?.len();
    let in_zip = |source| match source {
        zip::result::ZipError::Io(error) => FileError::unreadable(path, error),
        error => FileFault::NotNpz(Box::new(error)).of(path),
    };
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(in_zip)?;
    let mut arrays = Vec::with_capacity(archive.len());
    for at in 0..archive.len() {
        let name = {
            let member = archive.by_index_raw(at).map_err(in_zip)?;
            member.name().map_err(in_zip)?.into_owned()
        };
        let Some(label) = name.strip_suffix(".npy") else {
            return Err(unknown(path, name));
        };
        if !wanted(label) {
            continue;
        }
        let array = member(&mut archive, at, length).map_err(|source| {
            FileFault::Npy(Box::new(source)).at(path, FilePlace::Array(label.to_owned()))
        })?;
        arrays.push((label.to_owned(), array));
    }
    Ok(arrays)
}

/// Reads an array. `length` is that of the whole file and bounds the sizes that the member declares.
fn member(
    archive: &mut ZipArchive<BufReader<File>>,
    at: usize,
    length: u64,
) -> Result<NpyColumn, NpyReadError> {
    let (size, packed, method) = {
        let member = archive.by_index_raw(at)?;
        (
            member.size(),
            member.compressed_size(),
            member.compression(),
        )
    };
    let packed = packed.min(length);
    let max = match method {
        CompressionMethod::Stored => packed,
        CompressionMethod::Deflated => packed.saturating_mul(MAX_DEFLATE_RATIO),
        _ => return Err(NpyReadError::Packing),
    };
    if size > max {
        return Err(NpyReadError::Packed { packed, size });
    }
    let mut member = archive.by_index(at)?;
    npy::read(&mut member, size, packed)
}
