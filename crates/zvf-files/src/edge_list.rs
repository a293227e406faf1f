//! Edge lists: a graph as text, one edge a line, beside a table of its nodes.
//!
//! ```text
//! # source target weight
//! a b 1.5
//! b c 2
//! c d {'weight': 3, 'label': 'bridge'}
//! ```
//!
//! Fields are separated by commas or tabs if the first line has any, otherwise by blanks. Lines that
//! start with `#` or `%` are comments. The first two fields are ids of nodes, and further ones are
//! link attributes: `weight`, or `data_1`, `data_2`, …. networkx writes attributes as a Python
//! dictionary, which names them. A first line whose ids are no nodes, as `source,target,weight`, names
//! the columns.
//!
//! Edges have no coordinates. The table of nodes is a file of comma- or tab-separated values, given
//! in [`FileReadOptions::with`](crate::FileReadOptions::with), with a line of names. The column `id`,
//! `node_id` or `node`, otherwise the first, has the ids. The columns that
//! [`FileReadOptions::axes`](crate::FileReadOptions::axes) names, by default `x`, `y` and `z`, have
//! the coordinates. Others are vertex attributes.
//!
//! Columns are int64, float64, bool or text, the first that all of their fields are. Integers that
//! float64 would round are text. Ids are int64 if all of them are integers in their shortest
//! form, otherwise text. Nothing in an edge list tells whether it is directed.

mod literal;
mod table;

use std::{collections::HashMap, path::Path};

use zvf::{Column, Geometry, GeometryKind};

use crate::{
    FileDescription, FileError, FileFault, FileFormat, FileReadOptions, WholeReader,
    cell_column::{CellColumn, check_size},
    input::ByteReader,
    names::rename,
    node_columns::take_coordinates,
    text::LineReader,
};
use table::{NodeTable, Separator};

/// Opens a file, with the table of its nodes.
///
/// # Errors
///
/// [`FileError`] if a file is damaged, or an edge ends in a node that the table lacks.
pub fn open(path: &Path, options: &FileReadOptions) -> Result<WholeReader, FileError> {
    let [nodes_path] = options.with.as_slice() else {
        let why = "an edge list has no coordinates; give one table of its nodes with --with, as nodes.csv with \
                   the columns id, x, y and z";
        return Err(FileFault::Unsupported(why).of(path));
    };
    let table = NodeTable::read(nodes_path, options.unpacked)?;
    let in_table = |fault: FileFault| fault.of(nodes_path);
    let rows = table.rows().map_err(in_table)?;
    let mut lines = LineReader::new(ByteReader::open(path, options.unpacked)?);
    let mut edges = EdgeColumns::default();
    while let Some(line) = lines.next()? {
        let added = edges.add(line, &rows);
        added.map_err(|fault| lines.error(fault))?;
    }
    if table.len() == 0 {
        return Err(FileFault::Empty.of(nodes_path));
    }
    let sizes = edges.columns.iter().map(|_| edges.links.len() / 2);
    check_size(sizes, options.unpacked).map_err(|fault| fault.of(path))?;
    let mut description = FileDescription::new(FileFormat::EdgeList, GeometryKind::Graphs);
    let mut vertex = table.columns();
    let node = |row| table.id(row);
    let coordinates = take_coordinates(&mut vertex, &options.axes, node);
    let (positions, axes) = coordinates.map_err(in_table)?;
    description.axes = axes;
    let mut link = edges.columns();
    rename(&mut vertex, &mut description.header, "names");
    rename(&mut link, &mut description.header, "link_names");
    let geometry = Geometry::builder(positions)
        .links(2, edges.links)
        .vertex(vertex)
        .link(link);
    Ok(WholeReader::new(geometry, description))
}

/// Edges and their attributes.
#[derive(Debug, Default)]
struct EdgeColumns {
    separator: Option<Separator>,
    links: Vec<i64>,
    /// Names of columns in the first line.
    header: Vec<String>,
    columns: Vec<(String, CellColumn)>,
    places: HashMap<String, usize>,
}

/// Upper bound on the number of columns.
const COLUMNS: usize = 4096;

impl EdgeColumns {
    fn add(&mut self, line: &str, rows: &HashMap<&str, usize>) -> Result<(), FileFault> {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', '%']) {
            return Ok(());
        }
        let (line, literal) = match line.find('{').and_then(|at| line.split_at_checked(at)) {
            Some((start, literal)) => (start, Some(literal)),
            None => (line, None),
        };
        let separator = *self.separator.get_or_insert_with(|| Separator::of(line));
        let mut fields = separator.fields(line)?;
        if literal.is_some() && fields.last().is_some_and(String::is_empty) {
            // The separator before the dictionary.
            fields.pop();
        }
        let [source, target, data @ ..] = fields.as_slice() else {
            let expected = "a line has the ids of two nodes; the file is damaged";
            return Err(FileFault::field(
                "the number of fields",
                fields.len(),
                expected,
            ));
        };
        let is_first = self.links.is_empty() && self.header.is_empty();
        let ends = [source, target].map(|id| rows.get(id.as_str()));
        if is_first && literal.is_none() && ends == [None, None] {
            self.header = fields;
            return Ok(());
        }
        let edge = self.links.len() / 2;
        for (end, id) in ends.into_iter().zip([source, target]) {
            let row = end.and_then(|row| i64::try_from(*row).ok());
            let unknown = || FileFault::UnknownNode(id.chars().take(64).collect());
            self.links.push(row.ok_or_else(unknown)?);
        }
        if let Some(literal) = literal {
            if !data.is_empty() {
                let why = "fields and a dictionary are in one line; write one of them";
                return Err(FileFault::Unsupported(why));
            }
            for (name, value) in literal::dictionary(literal)? {
                if let Some(value) = value {
                    self.set(&name, edge, &value)?;
                }
            }
            return Ok(());
        }
        let is_only = data.len() == 1;
        for (number, value) in data
            .iter()
            .enumerate()
            .filter(|(_, value)| !value.is_empty())
        {
            let named = self.header.get(number.saturating_add(2)).cloned();
            let name = named.unwrap_or_else(|| {
                if is_only {
                    "weight".to_owned()
                } else {
                    format!("data_{}", number.saturating_add(1))
                }
            });
            self.set(&name, edge, value)?;
        }
        Ok(())
    }

    fn set(&mut self, name: &str, edge: usize, value: &str) -> Result<(), FileFault> {
        let next = self.columns.len();
        let place = *self.places.entry(name.to_owned()).or_insert(next);
        if place == next {
            if next == COLUMNS {
                return Err(FileFault::Unsupported(
                    "edges have more than 4096 attributes",
                ));
            }
            self.columns.push((name.to_owned(), CellColumn::default()));
        }
        let column = self.columns.get_mut(place);
        if column.is_some_and(|(_, column)| column.set(edge, value)) {
            return Ok(());
        }
        Err(FileFault::Twice(name.chars().take(64).collect()))
    }

    fn columns(&self) -> Vec<Column> {
        let edges = self.links.len() / 2;
        let columns = self.columns.iter();
        columns
            .map(|(name, cells)| cells.column(name, edges, None))
            .collect()
    }
}
