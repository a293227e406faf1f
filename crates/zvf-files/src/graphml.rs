//! `GraphML`: graphs as XML, whose nodes have coordinates among their attributes.
//!
//! | element | meaning | in the geometry |
//! |---|---|---|
//! | `key` with `id`, `for`, `attr.name`, `attr.type`, and an element `default` | declares an attribute of nodes, edges, graphs or all | its type |
//! | `graph` with `edgedefault` | the one graph | links are directed or not |
//! | `node` with `id` | node | vertex, `vertex.node_id` |
//! | `edge` with `source`, `target`, and perhaps `id` and `directed` | edge | link, `link.edge_id`, `link.directed` |
//! | `data` with `key`, in a node or an edge | value of an attribute | vertex and link attributes |
//! | `data` in the graph | value | `graph` in the header |
//!
//! Coordinates are the attributes of nodes that
//! [`FileReadOptions::axes`](crate::FileReadOptions::axes) names, by default `x`, `y` and `z`. Types are `boolean`, `int`, `long`,
//! `float`, `double` and `string`. Ids are int64 if all of them are integers in their
//! shortest form, otherwise text.
//!
//! Hyperedges, ports and nested graphs are refused. Elements inside `data`, in which programs keep
//! drawings, are left out with a note.

use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
};

use serde_json::{Map, Value};
use zvf::{Column, Geometry, GeometryKind, NumericColumn, numeric::Kind};

use crate::{
    FileDescription, FileError, FileFault, FileFormat, FileReadOptions, WholeReader,
    cell_column::{CellColumn, CellType, check_size},
    names::rename,
    node_columns::take_coordinates,
    xml::{XmlAttributes, XmlEvent, XmlReader},
};

/// Upper bound on nested elements, for the drawings in `data`.
const DEPTH: usize = 32;
/// Upper bound on the text of the graph in the header.
const GRAPH_TEXT: usize = 8 << 10;

/// Opens a file.
///
/// # Errors
///
/// [`FileError`] if the file is damaged, or its nodes have no coordinates.
pub fn open(path: &Path, options: &FileReadOptions) -> Result<WholeReader, FileError> {
    let mut reader = XmlReader::open(path, options.unpacked, DEPTH)?;
    let mut content = GraphContent::default();
    while let Some(event) = reader.next()? {
        let done = match event {
            XmlEvent::Start { name, attributes } => {
                content.start(&name, &attributes, reader.open_elements())
            }
            XmlEvent::End { name, text } => content.end(&name, &text),
        };
        done.map_err(|fault| reader.error(fault))?;
    }
    content.finish(options).map_err(|fault| fault.of(path))
}

/// A declared attribute.
#[derive(Debug)]
struct GraphKey {
    name: String,
    cell_type: CellType,
    of: String,
    default: Option<String>,
    nodes: CellColumn,
    edges: CellColumn,
}

/// An end of an edge: a row, or the id of a node that is declared later.
#[derive(Debug)]
enum EdgeEnd {
    Row(usize),
    Id(String),
}

/// The element that a value belongs to.
#[derive(Clone, Copy, Debug, Default)]
enum ValueOwner {
    #[default]
    Graph,
    Node(usize),
    Edge(usize),
}

/// The content of a file.
#[derive(Debug, Default)]
struct GraphContent {
    /// Declared attributes in the order of the file, and their places by id.
    keys: Vec<GraphKey>,
    places: HashMap<String, usize>,
    is_directed: Option<bool>,
    rows: HashMap<String, usize>,
    node_ids: CellColumn,
    ends: Vec<[EdgeEnd; 2]>,
    edge_ids: CellColumn,
    /// Direction of each edge, and whether any differs from that of the graph.
    directions: Vec<bool>,
    has_own_directions: bool,
    owner: ValueOwner,
    /// The key of the open element `data` or `key`.
    current: Option<usize>,
    graph: Map<String, Value>,
    graph_text: usize,
    left_out: BTreeSet<String>,
}

impl GraphContent {
    fn start(
        &mut self,
        name: &str,
        attributes: &XmlAttributes,
        open: &[String],
    ) -> Result<(), FileFault> {
        // The element itself is open.
        let mut outside = open.iter().rev().skip(1);
        if outside.any(|outer| outer == "data") {
            self.left_out.insert("elements inside data".to_owned());
            self.current = None;
            return Ok(());
        }
        let value = |key: &'static str| {
            let value = attributes.get(key).map(String::as_str);
            value.ok_or(FileFault::Absent { attribute: key })
        };
        match name {
            "key" => {
                self.key(value("id")?, attributes)?;
            }
            "graph" => {
                if self.is_directed.is_some() {
                    let reason = "the file has several graphs; write each to a file of its own";
                    return Err(FileFault::Unsupported(reason));
                }
                let found = value("edgedefault")?;
                self.is_directed = Some(match found {
                    "directed" => true,
                    "undirected" => false,
                    _ => {
                        let expected = "edges are directed or undirected";
                        return Err(FileFault::field("edgedefault", found, expected));
                    }
                });
                self.owner = ValueOwner::Graph;
            }
            "node" => {
                let id = value("id")?;
                let row = self.rows.len();
                if u32::try_from(row).is_err() {
                    return Err(FileFault::Unsupported(
                        "a store has fewer than 2^32 vertices",
                    ));
                }
                if self.rows.insert(id.to_owned(), row).is_some() {
                    return Err(FileFault::Twice(id.chars().take(64).collect()));
                }
                self.node_ids.set(row, id);
                self.owner = ValueOwner::Node(row);
            }
            "edge" => {
                let number = self.ends.len();
                let end = |id: &str| match self.rows.get(id) {
                    Some(row) => EdgeEnd::Row(*row),
                    None => EdgeEnd::Id(id.to_owned()),
                };
                let ends = [end(value("source")?), end(value("target")?)];
                self.ends.push(ends);
                if let Some(id) = attributes.get("id") {
                    self.edge_ids.set(number, id);
                }
                let of_graph = self.is_directed.unwrap_or(false);
                let own = attributes.get("directed").map(String::as_str);
                let is_directed = own.map_or(of_graph, |own| matches!(own, "true" | "1"));
                self.has_own_directions |= is_directed != of_graph;
                self.directions.push(is_directed);
                for port in ["sourceport", "targetport"] {
                    if attributes.contains_key(port) {
                        self.left_out.insert("ports of edges".to_owned());
                    }
                }
                self.owner = ValueOwner::Edge(number);
            }
            "data" => {
                let id = value("key")?;
                let place = self.places.get(id).copied();
                self.current = Some(place.ok_or_else(|| {
                    let expected = "no element key declares it; the file is damaged";
                    FileFault::field("the key of a value", id, expected)
                })?);
            }
            "hyperedge" | "port" => {
                let reason = "hyperedges and ports have no form in a store; remove them";
                return Err(FileFault::Unsupported(reason));
            }
            _ => {}
        }
        Ok(())
    }

    /// Declares an attribute.
    fn key(&mut self, id: &str, attributes: &XmlAttributes) -> Result<(), FileFault> {
        let text = |key: &str| attributes.get(key).map(String::as_str);
        let place = self.keys.len();
        if self.places.insert(id.to_owned(), place).is_some() {
            return Err(FileFault::Twice(id.chars().take(64).collect()));
        }
        let cell_type = match text("attr.type") {
            Some("boolean") => CellType::Bool,
            Some("int") => CellType::Int32,
            Some("long") => CellType::Int64,
            Some("float") => CellType::Float32,
            Some("double") => CellType::Float64,
            Some("string") | None => CellType::Text,
            Some(found) => {
                let expected = "types are boolean, int, long, float, double and string";
                return Err(FileFault::field("attr.type", found, expected));
            }
        };
        self.keys.push(GraphKey {
            name: text("attr.name").unwrap_or(id).to_owned(),
            cell_type,
            of: text("for").unwrap_or("all").to_owned(),
            default: None,
            nodes: CellColumn::default(),
            edges: CellColumn::default(),
        });
        self.current = Some(place);
        Ok(())
    }

    fn end(&mut self, name: &str, text: &[u8]) -> Result<(), FileFault> {
        match name {
            "default" => {
                let key = self.current.and_then(|place| self.keys.get_mut(place));
                if let Some(key) = key {
                    let text = cell(key.cell_type, text)?;
                    key.default = Some(text);
                }
            }
            "data" => {
                let Some(place) = self.current.take() else {
                    return Ok(());
                };
                self.value(place, text)?;
            }
            "key" => self.current = None,
            "node" | "edge" => self.owner = ValueOwner::Graph,
            _ => {}
        }
        Ok(())
    }

    /// Stores a value of the attribute at a place.
    fn value(&mut self, place: usize, text: &[u8]) -> Result<(), FileFault> {
        let Some(key) = self.keys.get_mut(place) else {
            return Ok(());
        };
        let text = cell(key.cell_type, text)?;
        let is_new = match self.owner {
            ValueOwner::Node(row) => key.nodes.set(row, &text),
            ValueOwner::Edge(number) => key.edges.set(number, &text),
            ValueOwner::Graph => {
                let size = text.len().saturating_add(key.name.len());
                self.graph_text = self.graph_text.saturating_add(size);
                if self.graph_text > GRAPH_TEXT {
                    self.left_out
                        .insert("attributes of the graph of more than 8 KiB".to_owned());
                    return Ok(());
                }
                self.graph.insert(key.name.clone(), text.into()).is_none()
            }
        };
        if is_new {
            return Ok(());
        }
        Err(FileFault::Twice(key.name.clone()))
    }

    fn finish(mut self, options: &FileReadOptions) -> Result<WholeReader, FileFault> {
        let Some(is_directed) = self.is_directed else {
            let expected = "a GraphML file has an element graph; it is cut off or damaged";
            return Err(FileFault::field("the element", "missing", expected));
        };
        let nodes = self.rows.len();
        if nodes == 0 {
            return Err(FileFault::Empty);
        }
        let links = self.links()?;
        let edges = self.ends.len();
        for key in &mut self.keys {
            let is_of = |what: &str| key.of == what || key.of == "all";
            let (of_nodes, of_edges) = (is_of("node"), is_of("edge") && edges > 0);
            if let Some(default) = &key.default {
                if of_nodes {
                    key.nodes.fill(default);
                }
                if of_edges {
                    key.edges.fill(default);
                }
            }
        }
        let columns = self
            .keys
            .iter()
            .flat_map(|key| [(&key.nodes, nodes), (&key.edges, edges)])
            .filter(|(cells, _)| !cells.is_empty());
        check_size(columns.map(|(_, rows)| rows), options.unpacked)?;
        let mut vertex = vec![self.node_ids.ids("node_id", nodes)];
        let mut link = Vec::new();
        for key in &self.keys {
            let typed = Some(key.cell_type);
            if !key.nodes.is_empty() {
                vertex.push(key.nodes.column(&key.name, nodes, typed));
            }
            if !key.edges.is_empty() {
                link.push(key.edges.column(&key.name, edges, typed));
            }
        }
        let node = |row: usize| self.node_ids.get(row).unwrap_or_default().to_owned();
        let (positions, axes) = take_coordinates(&mut vertex, &options.axes, node)?;
        if !self.edge_ids.is_empty() {
            link.push(self.edge_ids.ids("edge_id", edges));
        }
        if self.has_own_directions {
            let bytes = self.directions.iter().map(|it| u8::from(*it)).collect();
            let numbers = NumericColumn {
                bytes,
                ..NumericColumn::new(Kind::Bool, 1)
            };
            link.push(Column::new("directed", numbers));
        }
        let mut description = FileDescription::new(FileFormat::GraphMl, GeometryKind::Graphs);
        description.axes = axes;
        description.directed = is_directed;
        rename(&mut vertex, &mut description.header, "names");
        rename(&mut link, &mut description.header, "link_names");
        if !self.graph.is_empty() {
            let graph = Value::Object(std::mem::take(&mut self.graph));
            description.header.insert("graph".to_owned(), graph);
        }
        if !self.left_out.is_empty() {
            let list: Vec<&str> = self.left_out.iter().map(String::as_str).collect();
            let note = format!("left out: {}", list.join(", "));
            description.notes.push(note);
        }
        let geometry = Geometry::builder(positions)
            .links(2, links)
            .vertex(vertex)
            .link(link);
        Ok(WholeReader::new(geometry, description))
    }

    /// Returns the rows of the ends of all edges.
    fn links(&self) -> Result<Vec<i64>, FileFault> {
        let row = |end: &EdgeEnd| {
            let row = match end {
                EdgeEnd::Row(row) => Some(*row),
                EdgeEnd::Id(id) => self.rows.get(id).copied(),
            };
            let row = row.and_then(|row| i64::try_from(row).ok());
            row.ok_or_else(|| match end {
                EdgeEnd::Id(id) => FileFault::UnknownNode(id.chars().take(64).collect()),
                EdgeEnd::Row(_) => {
                    FileFault::Broken("a link refers to a vertex that does not exist")
                }
            })
        };
        self.ends.iter().flatten().map(row).collect()
    }
}

/// Returns the text of a value, without blanks around numbers.
fn cell(cell_type: CellType, text: &[u8]) -> Result<String, FileFault> {
    let text = String::from_utf8_lossy(text);
    if cell_type == CellType::Text {
        return Ok(text.into_owned());
    }
    let text = text.trim();
    cell_type.check(text)?;
    Ok(text.to_owned())
}
