//! Writes skeletons, which are collected until the last batch, or until their objects are complete
//! and each has a file.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use serde_json::Value;
use zvf::{Column, QueryResult, numeric::Kind};

use crate::{
    FileError, FileFault, FileHeader, GroupTables, ObjectFiles, ResultDescription, ResultWriter,
    WrittenResult,
    values::{AxisOrder, narrow, numbers, to_f64},
    writer::{OutputSink, groups_left_out},
};

/// An SWC file, or one for each object.
#[derive(Debug)]
pub struct SwcWriter {
    path: PathBuf,
    /// Names of the files, if each object has one.
    of_objects: Option<ObjectFiles>,
    /// Files that were written.
    files: Vec<PathBuf>,
    kept: FileHeader,
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
    left_out: Vec<String>,
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
    kind: i64,
    id: i64,
    source_row: i64,
}

impl SwcWriter {
    /// Creates a writer. Nothing is written before an object or the result is complete.
    ///
    /// # Errors
    ///
    /// None; the signature is that of other writers.
    pub fn create(path: &Path, description: &ResultDescription) -> Result<Self, FileError> {
        Ok(Self {
            path: path.to_path_buf(),
            of_objects: ObjectFiles::parse(path),
            files: Vec::new(),
            kept: description.headers.get("swc").cloned().unwrap_or_default(),
            samples: Vec::new(),
            first: 0,
            parents: HashMap::new(),
            names: HashMap::new(),
            is_wide: false,
            order: None,
            left_out: Vec::new(),
        })
    }

    /// Notes what the format cannot hold, in the first batch.
    fn plan(&mut self, batch: &QueryResult) {
        if self.order.is_some() {
            return;
        }
        let has = |name: &str| batch.vertex.iter().any(|column| column.name == name);
        self.order = Some(SampleOrder {
            has_ids: has("swc_id"),
            has_rows: has("source_row"),
        });
        if !has("radius") {
            self.left_out
                .push("vertex.radius: absent from the store; 0 is written".to_owned());
        }
        let known = ["swc_id", "source_row", "type", "radius"];
        let vertex = batch
            .vertex
            .iter()
            .filter(|column| !known.contains(&column.name.as_str()));
        let object = batch.object.iter().filter(|column| column.name != "name");
        let scopes: [(&str, Vec<&Column>); 4] = [
            ("vertex", vertex.collect()),
            ("fragment", batch.fragment.iter().collect()),
            ("link", batch.link.iter().collect()),
            ("object", object.collect()),
        ];
        for (scope, columns) in scopes {
            let lines = columns.into_iter();
            let lines =
                lines.map(|column| format!("{scope}.{}: not supported by swc", column.name));
            self.left_out.extend(lines);
        }
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
        self.is_wide |= batch.positions.kind != Kind::Float32;
        let positions = coordinates.rows(&batch.positions)?;
        let column = |name: &str| {
            let column = batch.vertex.iter().find(|column| column.name == name);
            column
                .and_then(numbers)
                .and_then(|numbers| to_f64(&numbers))
                .unwrap_or_default()
        };
        let [radius, kind, id, source_row] = ["radius", "type", "swc_id", "source_row"].map(column);
        let owners = batch.object_ids.as_deref().unwrap_or_default();
        let at = |values: &[f64], row: usize| values.get(row).copied().unwrap_or(0.0);
        for (row, position) in positions.into_iter().enumerate() {
            self.samples.push(StoredSample {
                object: owners.get(row).copied().unwrap_or(0),
                position,
                radius: at(&radius, row),
                kind: whole(at(&kind, row)),
                id: whole(at(&id, row)),
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
                        sample.id
                    }
                };
                rows.sort_by_key(key);
            } else {
                *rows = self.parents_first(rows);
            }
        }
        objects
    }

    /// Orders rows so that parents precede their children.
    fn parents_first(&self, rows: &[usize]) -> Vec<usize> {
        let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut stack = Vec::new();
        for row in rows {
            match self.parents.get(row) {
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
        for (object, rows) in self.objects() {
            let name = self.names.get(&object).map(String::as_str);
            let path = of_objects.path(object, name)?;
            let file = self.file(&path, &[(object, &rows)])?;
            self.files.push(file);
        }
        Ok(of_objects)
    }

    /// Writes the objects to a file.
    fn file(&self, path: &Path, objects: &[(i64, &[usize])]) -> Result<PathBuf, FileError> {
        let rows = || objects.iter().flat_map(|(_, rows)| rows.iter().copied());
        let sample = |row: usize| self.samples.get(row).copied().unwrap_or_default();
        let mut ids: HashMap<usize, i64> = HashMap::new();
        let mut seen = std::collections::HashSet::new();
        let keeps_ids =
            self.order.unwrap_or_default().has_ids && rows().all(|row| seen.insert(sample(row).id));
        for (number, row) in (1_i64..).zip(rows()) {
            ids.insert(row, if keeps_ids { sample(row).id } else { number });
        }
        let mut sink = OutputSink::create(path)?;
        let mut line_number = 1_u64;
        for (object, rows) in objects {
            let comments = self
                .kept
                .get("comments")
                .and_then(|all| all.get(object.to_string()));
            let comments = comments
                .and_then(Value::as_array)
                .filter(|_| objects.len() == 1);
            let mut comments = comments.into_iter().flatten().filter_map(|comment| {
                let pair = comment.as_array()?;
                Some((pair.first()?.as_u64()?, pair.get(1)?.as_str()?))
            });
            let mut comment = comments.next();
            for row in *rows {
                while let Some((_, text)) = comment.filter(|(line, _)| *line <= line_number) {
                    sink.write(format!("{text}\n").as_bytes())?;
                    line_number = line_number.saturating_add(1);
                    comment = comments.next();
                }
                let line = self.line(*row, sample(*row), &ids);
                sink.write(line.as_bytes())?;
                line_number = line_number.saturating_add(1);
            }
            for (_, text) in comment.into_iter().chain(comments) {
                sink.write(format!("{text}\n").as_bytes())?;
            }
        }
        sink.publish(|_| Ok(()))
    }

    fn line(&self, row: usize, sample: StoredSample, ids: &HashMap<usize, i64>) -> String {
        let id = ids.get(&row).copied().unwrap_or(0);
        let parent = self
            .parents
            .get(&row)
            .and_then(|parent| ids.get(parent))
            .copied();
        let [x, y, z] = sample.position;
        let number = |number: f64| match self.is_wide {
            true => number.to_string(),
            false => narrow(number).to_string(),
        };
        let [x, y, z, radius] = [x, y, z, sample.radius].map(number);
        let parent = parent.unwrap_or(-1);
        format!("{id} {} {x} {y} {z} {radius} {parent}\n", sample.kind)
    }
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "ids and types are integers of 32 bits, and a cast of another number saturates"
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
            let objects = self.objects();
            let objects: Vec<(i64, &[usize])> = objects
                .iter()
                .map(|(object, rows)| (*object, rows.as_slice()))
                .collect();
            let file = self.file(&self.path, &objects)?;
            self.files.push(file);
        }
        Ok(WrittenResult {
            files: self.files,
            left_out: self.left_out,
        })
    }
}
