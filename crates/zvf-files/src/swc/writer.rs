//! Writes skeletons, which are collected until the last batch, or until their objects are complete
//! and each has a file.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::{Path, PathBuf},
};

use serde_json::Value;
use zvf::{Column, ColumnValues, NumericColumn, ObjectIds, QueryResult, Scope, numeric::Kind};

use super::{in_unit, sample::circle, stated_unit};
use crate::{
    FileError, FileFault, FileHeader, GroupTables, ObjectFiles, ResultWriter, StoreDescription,
    WrittenResult,
    length::LengthUnit,
    values::{AxisOrder, fits_f32, narrow, numbers, to_f64},
    writer::{OutputSink, groups_left_out, left_out, object_ids_left_out},
};

/// Attributes of vertices that samples hold, as numbers of one channel.
const KNOWN: [&str; 4] = ["radius", "type", "swc_id", "source_row"];

/// An SWC file, or one for each object.
#[derive(Debug)]
pub struct SwcWriter {
    path: PathBuf,
    /// Names of the files, if each object has one.
    of_objects: Option<ObjectFiles>,
    /// Files that were written.
    files: Vec<PathBuf>,
    kept: FileHeader,
    /// The unit of all axes.
    unit: Option<LengthUnit>,
    samples: Vec<StoredSample>,
    /// Number of vertices before the first sample.
    first: usize,
    /// Parent of each sample, by row.
    parents: HashMap<usize, usize>,
    names: HashMap<i64, String>,
    /// True if a number needs float64.
    is_wide: bool,
    /// The attributes that order samples, once the first batch has come.
    order: Option<SampleOrder>,
    has_names: bool,
    left_out: Vec<String>,
    notes: Vec<String>,
}

/// Attributes that a store has.
#[derive(Clone, Copy, Debug, Default)]
struct SampleOrder {
    has_ids: bool,
    has_rows: bool,
}

/// A vertex of the result.
#[derive(Clone, Copy, Debug, Default)]
struct StoredSample {
    object: i64,
    position: [f64; 3],
    radius: f64,
    kind: i32,
    /// `None` if the attribute is not the id of a sample.
    id: Option<i64>,
    source_row: i64,
}

/// Returns whether a sample has a place for an attribute of vertices.
fn is_held(column: &Column) -> bool {
    let is_number = |values: &NumericColumn| {
        values.width == 1 && !matches!(values.kind, Kind::Complex64 | Kind::Complex128)
    };
    KNOWN.contains(&column.name.as_str())
        && matches!(&column.values, ColumnValues::Numeric(values) if is_number(values))
}

/// Returns the attribute with this name; `None` if the batch has none that is held.
fn held(batch: &QueryResult, name: &str) -> Option<Vec<f64>> {
    let mut columns = batch.vertex.iter().filter(|column| is_held(column));
    let column = columns.find(|column| column.name == name)?;
    numbers(column).and_then(|values| to_f64(&values))
}

/// Returns the unit of all axes of space; `None` if they have several, or none.
fn common_unit(description: &StoreDescription) -> Option<LengthUnit> {
    let mut units = description.axes.iter().map(LengthUnit::of_axis);
    let first = units.next()??;
    units.all(|unit| unit == Some(first)).then_some(first)
}

impl SwcWriter {
    /// Creates a writer. Nothing is written before an object or the result is complete.
    ///
    /// # Errors
    ///
    /// None; the signature is that of other writers.
    pub fn create(path: &Path, description: &StoreDescription) -> Result<Self, FileError> {
        Ok(Self {
            path: path.to_path_buf(),
            of_objects: ObjectFiles::parse(path),
            files: Vec::new(),
            kept: description.headers.get("swc").cloned().unwrap_or_default(),
            unit: common_unit(description),
            samples: Vec::new(),
            first: 0,
            parents: HashMap::new(),
            names: HashMap::new(),
            is_wide: false,
            order: None,
            has_names: false,
            left_out: Vec::new(),
            notes: Vec::new(),
        })
    }

    /// Adds a line to what the format cannot hold, once.
    fn list(&mut self, line: &str) {
        if !self.left_out.iter().any(|listed| listed == line) {
            self.left_out.push(line.to_owned());
        }
    }

    /// Notes what the format cannot hold, in the first batch.
    fn plan(&mut self, batch: &QueryResult) {
        if self.order.is_some() {
            return;
        }
        let has = |name: &str| {
            let mut columns = batch.vertex.iter().filter(|column| is_held(column));
            columns.any(|column| column.name == name)
        };
        self.order = Some(SampleOrder {
            has_ids: has("swc_id"),
            has_rows: has("source_row"),
        });
        if !batch.vertex.iter().any(|column| column.name == "radius") {
            self.list("vertex.radius: absent from the store; 0 is written");
        }
        let holds = |scope: Scope, column: &Column| match scope {
            Scope::Vertex => is_held(column),
            Scope::Object => column.name == "name",
            Scope::Fragment | Scope::Link | Scope::Group => false,
        };
        self.left_out.extend(left_out(batch, "swc", holds));
    }

    fn add(&mut self, batch: &QueryResult) -> Result<(), FileFault> {
        let is_forest = batch.links.as_ref().is_none_or(|links| links.width == 2);
        if batch.parts.is_some() || !is_forest {
            return Err(FileFault::Result {
                format: "swc",
                holds: "skeletons",
                remedy: "write ply, obj or csv",
            });
        }
        self.plan(batch);
        let coordinates = AxisOrder::of(batch, "swc")?;
        let is_wide = |column: &Column| match &column.values {
            ColumnValues::Numeric(values) => column.name == "radius" && !fits_f32(values.kind),
            ColumnValues::Dictionary { .. } => false,
        };
        let mut held_columns = batch.vertex.iter().filter(|column| is_held(column));
        self.is_wide |= batch.positions.kind != Kind::Float32 || held_columns.any(is_wide);
        let positions = coordinates.rows(&batch.positions)?;
        let [radius, kind, id, source_row] = KNOWN.map(|name| held(batch, name));
        let ids = batch.object_ids.as_ref();
        let owners = ids.map(ObjectIds::numbers).unwrap_or_default();
        let at = |values: &Option<Vec<f64>>, row: usize| match values {
            Some(values) => values.get(row).copied().unwrap_or(f64::NAN),
            None => 0.0,
        };
        for (row, position) in positions.into_iter().enumerate() {
            let mut radius = at(&radius, row);
            if !radius.is_finite() {
                radius = 0.0;
                self.list("vertex.radius: has rows without a finite number; 0 is written");
            }
            let kind = integer(at(&kind, row));
            if kind.is_none() {
                self.list("vertex.type: has rows without an integer of 32 bits; 0 is written");
            }
            self.samples.push(StoredSample {
                object: owners.get(row).copied().unwrap_or(0),
                position,
                radius,
                kind: kind.unwrap_or(0),
                id: integer(at(&id, row)).map(i64::from).filter(|id| *id >= 0),
                source_row: whole(at(&source_row, row)),
            });
        }
        if let Some(links) = &batch.links {
            for link in links.ends.chunks_exact(2) {
                let [child, parent] = link else { continue };
                let row = |end: &u64| usize::try_from(*end).ok()?.checked_sub(self.first);
                let (Some(child), Some(parent)) = (row(child), row(parent)) else {
                    return Err(FileFault::Broken("a link ends beyond the rows"));
                };
                if self.parents.insert(child, parent).is_some() {
                    return Err(FileFault::Result {
                        format: "swc",
                        holds: "one parent for each vertex",
                        remedy: "write ply, obj or csv",
                    });
                }
            }
        }
        if let Some(names) = batch.object.iter().find(|column| column.name == "name") {
            self.has_names = true;
            for (row, id) in batch.objects.iter().enumerate() {
                if let Some(name) = names.text_at(row) {
                    self.names.insert(*id, name.to_owned());
                }
            }
        }
        Ok(())
    }

    /// Returns the rows of each object, in the order in which they are written.
    fn objects(&self) -> BTreeMap<i64, Vec<usize>> {
        let mut objects: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for (row, sample) in self.samples.iter().enumerate() {
            objects.entry(sample.object).or_default().push(row);
        }
        for rows in objects.values_mut() {
            let order = self.order.unwrap_or_default();
            if order.has_ids || order.has_rows {
                let key = |row: &usize| {
                    let sample = self.samples.get(*row).copied().unwrap_or_default();
                    if order.has_rows {
                        sample.source_row
                    } else {
                        sample.id.unwrap_or(i64::MAX)
                    }
                };
                rows.sort_by_key(key);
            } else {
                *rows = self.parents_first(rows);
            }
        }
        objects
    }

    /// Checks that no row is its own ancestor, once all links have come.
    fn check_trees(&self) -> Result<(), FileFault> {
        let count = self.samples.len();
        let mut ends = self.parents.iter();
        if ends.any(|(child, parent)| *child >= count || *parent >= count) {
            return Err(FileFault::Broken("a link ends beyond the rows"));
        }
        let parents = (0..count).map(|row| self.parents.get(&row).copied());
        match circle(&parents.collect::<Vec<_>>()) {
            None => Ok(()),
            Some(_) => Err(FileFault::Result {
                format: "swc",
                holds: "trees",
                remedy: "write ply, obj or csv",
            }),
        }
    }

    /// Orders the rows of an object so that parents precede their children. A row whose parent is of
    /// another object is a root among them.
    fn parents_first(&self, rows: &[usize]) -> Vec<usize> {
        let of_object: HashSet<usize> = rows.iter().copied().collect();
        let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut stack = Vec::new();
        for row in rows {
            match self.parents.get(row).filter(|row| of_object.contains(row)) {
                Some(parent) => children.entry(*parent).or_default().push(*row),
                None => stack.push(*row),
            }
        }
        stack.reverse();
        let mut ordered = Vec::with_capacity(rows.len());
        while let Some(row) = stack.pop() {
            ordered.push(row);
            stack.extend(children.remove(&row).into_iter().flatten().rev());
        }
        ordered
    }

    /// Writes a file for each object of the samples.
    fn write_objects(&mut self, mut of_objects: ObjectFiles) -> Result<ObjectFiles, FileError> {
        let checked = self.check_trees();
        checked.map_err(|fault| fault.of(&self.path))?;
        let object = |row: usize| self.samples.get(row).map(|sample| sample.object);
        let mut links = self.parents.iter();
        if links.any(|(child, parent)| object(*child) != object(*parent)) {
            self.list("links between objects: not supported by swc in a file for each object");
        }
        for (object, rows) in self.objects() {
            let name = self.names.get(&object).map(String::as_str);
            let path = of_objects.path(object, name)?;
            let file = self.file(&path, &[(object, &rows)])?;
            self.files.push(file);
        }
        Ok(of_objects)
    }

    /// Writes all objects to one file.
    fn write_whole(&mut self) -> Result<(), FileError> {
        let checked = self.check_trees();
        checked.map_err(|fault| fault.of(&self.path))?;
        let by_object = self.objects();
        let objects: Vec<(i64, &[usize])> = by_object
            .iter()
            .map(|(object, rows)| (*object, rows.as_slice()))
            .collect();
        // A file is an object, whose id and name are the name of the file.
        if objects.len() > 1 {
            self.list(&object_ids_left_out("swc"));
            self.notes.push(format!(
                "{} skeletons are in one file, from which most programs read one or none; write \
                 '{{object}}.swc' for a file each",
                objects.len()
            ));
            if self.has_names {
                self.list("object.name: not supported by swc in one file");
            }
            if self.kept.contains_key("comments") {
                self.list("the comments of several objects: not supported by swc in one file");
            }
        }
        let path = self.path.clone();
        let file = self.file(&path, &objects)?;
        self.files.push(file);
        Ok(())
    }

    /// Returns the ids of rows in a file: those of the store, unless they repeat.
    fn ids(&mut self, rows: &[usize]) -> HashMap<usize, i64> {
        let id = |row: &usize| self.samples.get(*row).and_then(|sample| sample.id);
        if self.order.unwrap_or_default().has_ids {
            let ids: Option<Vec<i64>> = rows.iter().map(id).collect();
            let mut seen = HashSet::new();
            if let Some(ids) = ids.filter(|ids| ids.iter().all(|id| seen.insert(*id))) {
                return rows.iter().copied().zip(ids).collect();
            }
            self.list("vertex.swc_id: is not a different id for each sample; samples are numbered");
        }
        rows.iter().copied().zip(1..).collect()
    }

    /// Writes the objects to a file.
    fn file(&mut self, path: &Path, objects: &[(i64, &[usize])]) -> Result<PathBuf, FileError> {
        let rows: Vec<usize> = objects
            .iter()
            .flat_map(|(_, rows)| *rows)
            .copied()
            .collect();
        let ids = self.ids(&rows);
        let mut sink = OutputSink::create(path)?;
        let mut line_number = 1_u64;
        let unit = self.unit.map(|unit| unit.name);
        let mut is_stated = unit.is_none();
        for (object, rows) in objects {
            let mut comments = self
                .kept
                .get("comments")
                .and_then(|all| all.get(object.to_string()))
                .and_then(Value::as_array)
                .filter(|_| objects.len() == 1)
                .into_iter()
                .flatten()
                .filter_map(|comment| {
                    let pair = comment.as_array()?;
                    let text = pair.get(1)?.as_str()?;
                    // The coordinates may be in another unit than those of the file.
                    let text = unit.map_or_else(|| text.to_owned(), |unit| in_unit(text, unit));
                    Some((pair.first()?.as_u64()?, text))
                });
            is_stated |= comments
                .clone()
                .any(|(_, text)| stated_unit(&text).is_some());
            if let Some(unit) = unit.filter(|_| !is_stated) {
                sink.write(format!("# Meta: {{\"units\": \"{unit}\"}}\n").as_bytes())?;
                is_stated = true;
            }
            let mut comment = comments.next();
            for row in *rows {
                while let Some((_, text)) = comment.take_if(|(line, _)| *line <= line_number) {
                    sink.write(format!("{text}\n").as_bytes())?;
                    line_number = line_number.saturating_add(1);
                    comment = comments.next();
                }
                let line = self.line(*row, &ids);
                sink.write(line.as_bytes())?;
                line_number = line_number.saturating_add(1);
            }
            for (_, text) in comment.into_iter().chain(comments) {
                sink.write(format!("{text}\n").as_bytes())?;
            }
        }
        sink.publish(|_| Ok(()))
    }

    fn line(&self, row: usize, ids: &HashMap<usize, i64>) -> String {
        let sample = self.samples.get(row).copied().unwrap_or_default();
        let id = ids.get(&row).copied().unwrap_or(0);
        let parent = self
            .parents
            .get(&row)
            .and_then(|parent| ids.get(parent))
            .copied();
        let [x, y, z] = sample.position;
        let number = |number: f64| {
            if self.is_wide {
                number.to_string()
            } else {
                narrow(number).to_string()
            }
        };
        let [x, y, z, radius] = [x, y, z, sample.radius].map(number);
        let parent = parent.unwrap_or(-1);
        format!("{id} {} {x} {y} {z} {radius} {parent}\n", sample.kind)
    }
}

/// Returns the integer of 32 bits that a number is.
fn integer(number: f64) -> Option<i32> {
    let is_whole = number.fract().abs().total_cmp(&0.0).is_eq();
    i32::try_from(whole(number)).ok().filter(|_| is_whole)
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "a cast of a number that is no integer of 64 bits saturates"
)]
fn whole(number: f64) -> i64 {
    number as i64
}

impl ResultWriter for SwcWriter {
    fn write(&mut self, batch: &QueryResult) -> Result<(), FileError> {
        self.add(batch).map_err(|fault| fault.of(&self.path))
    }

    fn end_objects(&mut self) -> Result<(), FileError> {
        let Some(of_objects) = self.of_objects.take() else {
            return Ok(());
        };
        self.of_objects = Some(self.write_objects(of_objects)?);
        self.first = self.first.saturating_add(self.samples.len());
        self.samples.clear();
        self.parents.clear();
        self.names.clear();
        Ok(())
    }

    fn finish(mut self: Box<Self>, tables: &GroupTables) -> Result<WrittenResult, FileError> {
        self.left_out.extend(groups_left_out(tables, "swc"));
        if let Some(of_objects) = self.of_objects.take() {
            self.write_objects(of_objects)?;
        } else {
            self.write_whole()?;
        }
        Ok(WrittenResult {
            files: self.files,
            left_out: self.left_out,
            notes: self.notes,
        })
    }
}
