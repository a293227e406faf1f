//! Tables whose rows belong to vertices or objects of an existing store.

use zvf::Column;
use zvf_model::layout::FRAGMENT_OWNERS;

use crate::{
    AttributeRename, FileFormat, StoreDescription, npz,
    table::{
        ColumnError, InputFile, MissingPolicy, TableReadOptions,
        column::{FileColumn, NullPolicy, attribute},
        has_scope,
        input_table::{AXES, rename_columns},
        rename::Renaming,
    },
    table_files::{read_description, read_table},
};
use crate::{FileError, FileFault};

/// The key of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableKey {
    /// Rows of vertices, by their address.
    Row,
    /// Rows of objects, by their id.
    Object,
    /// Fragments of vertices, by the address of a vertex.
    Fragment,
}

/// A table with a key, and attributes.
#[derive(Debug)]
pub struct KeyedTable {
    /// The key.
    pub key: TableKey,
    /// The key of each row; each key occurs once.
    pub ids: Vec<i64>,
    /// Attributes, without scope.
    pub columns: Vec<Column>,
    /// Number of the transaction to which addresses belong, if the file has it.
    pub transaction: Option<u64>,
    /// Columns that are not attributes of the key.
    pub left_out: Vec<String>,
}

impl TableKey {
    /// All keys.
    pub const ALL: [Self; 3] = [Self::Row, Self::Object, Self::Fragment];

    /// Returns the name of the key: that of its column, or `fragment`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Row => "row_id",
            Self::Object => "object_id",
            Self::Fragment => "fragment",
        }
    }

    /// Returns the names of the columns, or arrays of npz, that hold the key.
    fn names(self) -> [&'static str; 2] {
        match self {
            Self::Row | Self::Fragment => ["row_id", "row_ids"],
            Self::Object => ["object_id", "objects"],
        }
    }

    /// Returns the scope of the attributes.
    pub fn scope(self) -> &'static str {
        match self {
            Self::Row => "vertex",
            Self::Object => "object",
            Self::Fragment => "fragment",
        }
    }
}

/// Columns of a query result that are not attributes, besides axes.
const STRUCTURE: [&str; 11] = [
    "row_id",
    "row_ids",
    "object_id",
    "object_ids",
    "objects",
    "object",
    "part",
    "part_offsets",
    "part_objects",
    "positions",
    "links",
];

/// Reads a table. Without a key, rows belong to vertices if the table has their addresses. `renames`
/// name its attributes, and the column of the key.
///
/// # Errors
///
/// [`FileError`] if the table cannot be read, lacks the key, or lacks an attribute that is
/// to be renamed.
pub fn read_keyed(
    file: &InputFile,
    key: Option<TableKey>,
    missing: MissingPolicy,
    renames: &[AttributeRename],
) -> Result<KeyedTable, FileError> {
    keyed(file, key, columns(file, missing)?, renames)
}

/// Reads the keys of a table, and leaves out its other columns.
///
/// # Errors
///
/// [`FileError`] if the table cannot be read, or lacks the key.
pub fn read_keys(file: &InputFile, key: TableKey) -> Result<KeyedTable, FileError> {
    let mut read = columns(file, MissingPolicy::Reject)?;
    let is_key = |column: &FileColumn| key.names().contains(&column.label.as_str());
    // Without a key, the error names the columns.
    if read.columns.iter().any(is_key) {
        read.columns.retain(is_key);
    }
    keyed(file, Some(key), read, &[])
}

fn keyed(
    file: &InputFile,
    key: Option<TableKey>,
    read: FileColumns,
    renames: &[AttributeRename],
) -> Result<KeyedTable, FileError> {
    let FileColumns {
        mut columns,
        axes,
        description,
    } = read;
    let keys = [TableKey::Row, TableKey::Object].map(TableKey::name);
    let renames = rename_columns(&mut columns, renames, &keys);
    let mut renaming = Renaming::new(&renames);
    let has = |key: TableKey, columns: &[FileColumn]| {
        let mut names = columns.iter().map(|column| column.label.as_str());
        names.any(|name| key.names().contains(&name))
    };
    let found = TableKey::ALL.into_iter().find(|key| has(*key, &columns));
    let key = key.or(found).unwrap_or(TableKey::Row);
    let names: Vec<String> = columns.iter().map(|column| column.label.clone()).collect();
    let at = names
        .iter()
        .position(|name| key.names().contains(&name.as_str()))
        .ok_or_else(|| {
            FileFault::NoColumn {
                column: key.names()[0].to_owned(),
                columns: names,
            }
            .of(file.path())
        })?;
    let of_key = columns.remove(at);
    let ids = of_key.ids()?;
    of_key.check_distinct(&ids)?;
    let mut table = KeyedTable {
        key,
        columns: Vec::new(),
        transaction: description.and_then(|description| description.transaction),
        left_out: Vec::new(),
        ids,
    };
    for column in columns {
        let label = column.label.clone();
        let is_structure = STRUCTURE.contains(&label.as_str()) || axes.contains(&label);
        let name = match label.split_once('.') {
            // The owners of fragments follow from the objects.
            Some(("fragment", FRAGMENT_OWNERS)) => {
                table.left_out.push(label);
                continue;
            }
            Some((scope, name)) if scope == key.scope() => name,
            Some(_) if has_scope(&label) => {
                table.left_out.push(label);
                continue;
            }
            _ if is_structure => {
                table.left_out.push(label);
                continue;
            }
            _ => label.as_str(),
        };
        if column.values.len() != table.ids.len() {
            let (expected, found) = (table.ids.len(), column.values.len());
            return Err(column.error(ColumnError::Rows { expected, found }));
        }
        if key != TableKey::Object {
            column.check_complete()?;
        }
        let name = renaming.name(key.scope(), name);
        table.columns.push(attribute((name, column)));
    }
    renaming.finish(file.path())?;
    Ok(table)
}

/// The columns of a file.
struct FileColumns {
    columns: Vec<FileColumn>,
    /// Names of the columns that are axes.
    axes: Vec<String>,
    description: Option<StoreDescription>,
}

/// Reads all columns. Missing numbers are kept, because columns without a use may have them.
fn columns(file: &InputFile, missing: MissingPolicy) -> Result<FileColumns, FileError> {
    let nulls = NullPolicy::of_tables(missing);
    if !file.format().is_interchange() {
        return Err(FileFault::NoTable.of(file.path()));
    }
    if file.format() == FileFormat::Npz {
        let (columns, description) = npz::read_columns(file.path(), nulls)?;
        return Ok(FileColumns {
            columns,
            axes: Vec::new(),
            description,
        });
    }
    let (described, _) = read_description(file)?;
    let options = TableReadOptions {
        nulls,
        memory: None,
    };
    let table = read_table(file, options)?;
    let description = described.or(table.description);
    let of_description = description.as_ref().and_then(StoreDescription::axis_names);
    let axes = table
        .axes
        .or(of_description)
        .unwrap_or_else(|| AXES.map(str::to_owned).to_vec());
    Ok(FileColumns {
        columns: table.columns,
        axes,
        description,
    })
}
