//! A file for each object of a result.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
};

use zvf::{Column, Links, ObjectGroup, Parts, QueryResult};
use zvf_tables::{
    FileError, FileFault, ObjectFiles, OutputFile, StoreDescription, WrittenFiles,
    display::{count_noun, len_u64},
};

use super::write_one;

/// Writes each object of a result to a file of its own.
///
/// # Errors
///
/// Returns [`FileError`] if the result has no objects, two objects have one name, or a file
/// cannot be written. Files of earlier objects are complete then.
pub(crate) fn write(
    result: &QueryResult,
    description: &StoreDescription,
    file: &OutputFile,
    mut files: ObjectFiles,
) -> Result<WrittenFiles, FileError> {
    let split = ObjectSplit::of(result, file)?;
    let name = |column: &Column| column.name == "name";
    let names = result.object.iter().find(|column| name(column));
    let mut targets = Vec::with_capacity(result.objects.len());
    for (row, object) in result.objects.iter().enumerate() {
        let name = names.and_then(|names| names.text_at(row));
        targets.push(file.at(files.path(*object, name)?));
    }
    // The name of an object may be that of a table of another one, such as `soma.groups`.
    let published: HashSet<PathBuf> = targets.iter().map(OutputFile::published).collect();
    for target in &targets {
        let checked = target.check_sidecars(&published);
        checked.map_err(|error| FileFault::Target(error.into()).of_result())?;
    }
    let siblings: HashSet<PathBuf> = targets
        .iter()
        .map(|target| target.path().to_path_buf())
        .collect();
    let mut written = WrittenFiles::default();
    written.left_out = split.left_out();
    let mut seen = HashSet::new();
    for (row, target) in targets.iter().enumerate() {
        let object = split.object(row).map_err(FileFault::of_result)?;
        let one = write_one(&object, description, target, &siblings)?;
        written.files.extend(one.files);
        written.absent.extend(one.absent);
        for (all, lines) in [
            (&mut written.left_out, one.left_out),
            (&mut written.notes, one.notes),
        ] {
            let lines = lines.into_iter();
            all.extend(lines.filter(|line| seen.insert(line.clone())));
        }
    }
    Ok(written)
}

/// The items of each object.
#[derive(Clone, Debug, Default)]
struct ObjectItems {
    vertices: Vec<usize>,
    parts: Vec<usize>,
    links: Vec<usize>,
}

/// A result, divided by object.
struct ObjectSplit<'a> {
    result: &'a QueryResult,
    items: Vec<ObjectItems>,
    /// Vertices without one object.
    unowned: u64,
    /// Links between objects.
    between: u64,
}

impl<'a> ObjectSplit<'a> {
    fn of(result: &'a QueryResult, file: &OutputFile) -> Result<Self, FileError> {
        let rows: HashMap<i64, usize> = result
            .objects
            .iter()
            .zip(0_usize..)
            .map(|(id, row)| (*id, row))
            .collect();
        let mut split = Self {
            result,
            items: vec![ObjectItems::default(); result.objects.len()],
            unowned: 0,
            between: 0,
        };
        let owners: Vec<i64> = if let Some(parts) = &result.parts {
            let mut owners = Vec::with_capacity(result.positions.len());
            let spans = parts.offsets.iter().zip(parts.offsets.iter().skip(1));
            for (part, ((start, end), object)) in spans.zip(&parts.objects).enumerate() {
                owners.extend((*start..*end).map(|_| *object));
                if let Some(items) = rows.get(object).and_then(|row| split.items.get_mut(*row)) {
                    items.parts.push(part);
                }
            }
            owners
        } else if let Some(ids) = &result.object_ids {
            ids.numbers().to_vec()
        } else if result.positions.is_empty() {
            Vec::new()
        } else {
            return Err(FileFault::NoObjects.of(file.path()));
        };
        for (vertex, object) in owners.iter().enumerate() {
            match rows.get(object).and_then(|row| split.items.get_mut(*row)) {
                Some(items) => items.vertices.push(vertex),
                None => split.unowned = split.unowned.saturating_add(1),
            }
        }
        if let Some(links) = &result.links {
            let owner = |end: &u64| owners.get(usize::try_from(*end).ok()?).copied();
            for (number, ends) in links.ends.chunks_exact(width(links)).enumerate() {
                let mut of_ends = ends.iter().map(owner);
                let first = of_ends.next().flatten();
                let items = first
                    .filter(|first| of_ends.all(|other| other == Some(*first)))
                    .and_then(|first| split.items.get_mut(*rows.get(&first)?));
                match items {
                    Some(items) => items.links.push(number),
                    None => split.between = split.between.saturating_add(1),
                }
            }
        }
        Ok(split)
    }

    /// Lists the items that belong to no object.
    fn left_out(&self) -> Vec<String> {
        let mut lines: Vec<String> = unowned(self.unowned).into_iter().collect();
        if self.between > 0 {
            let links = count_noun(self.between, "link", "links");
            lines.push(format!("{links}: between objects"));
        }
        lines
    }

    /// Returns the result of one object.
    fn object(&self, row: usize) -> Result<QueryResult, FileFault> {
        let (result, none) = (self.result, ObjectItems::default());
        let items = self.items.get(row).unwrap_or(&none);
        let taken = |columns: &[Column], rows: &[usize]| {
            let columns = columns.iter();
            columns
                .map(|column| column.take(rows.iter().copied()))
                .collect()
        };
        let vertices = &items.vertices;
        let mut one = QueryResult::default();
        one.level = result.level;
        one.axes.clone_from(&result.axes);
        let positions = result.positions.take(vertices.iter().copied());
        one.positions = positions.ok_or(FileFault::Broken(
            "an object has a vertex that does not exist",
        ))?;
        one.object_ids = result.object_ids.as_ref().map(|ids| ids.take(vertices));
        one.row_ids = result.row_ids.as_ref().map(|ids| gather(ids, vertices));
        one.vertex = taken(&result.vertex, vertices);
        one.fragment = taken(&result.fragment, vertices);
        one.link = taken(&result.link, &items.links);
        one.objects = gather(&result.objects, &[row]);
        one.object = taken(&result.object, &[row]);
        if let Some(parts) = &result.parts {
            let mut own = Parts {
                offsets: vec![0],
                objects: gather(&parts.objects, &items.parts),
            };
            let mut end = 0_u64;
            for part in &items.parts {
                let offset = |at: usize| parts.offsets.get(at).copied().unwrap_or(0);
                let length = offset(part.saturating_add(1)).saturating_sub(offset(*part));
                end = end.saturating_add(length);
                own.offsets.push(end);
            }
            one.parts = Some(own);
        }
        if let Some(links) = &result.links {
            // Rows ascend, because vertices were divided in order.
            let new_row = |end: &u64| {
                let row = usize::try_from(*end).ok()?;
                vertices.binary_search(&row).ok().map(len_u64)
            };
            let width = width(links);
            let own = items.links.iter().filter_map(|number| {
                let start = number.checked_mul(width)?;
                links.ends.get(start..start.checked_add(width)?)
            });
            let ends = own.flat_map(|ends| ends.iter().filter_map(new_row));
            one.links = Some(Links {
                width: links.width,
                ends: ends.collect(),
            });
        }
        let is_member = |group: &&ObjectGroup| {
            let mut members = group.members.iter();
            one.objects
                .iter()
                .any(|id| members.any(|member| member == id))
        };
        let groups: Vec<ObjectGroup> = result
            .groups
            .iter()
            .filter(is_member)
            .map(|group| ObjectGroup {
                id: group.id,
                members: one.objects.clone(),
            })
            .collect();
        one.groups = groups;
        Ok(one)
    }
}

/// Returns the line about a number of vertices that are in no file of an object.
pub fn unowned(vertices: u64) -> Option<String> {
    let text = || count_noun(vertices, "vertex", "vertices");
    (vertices > 0).then(|| format!("{}: of no object, or of several", text()))
}

fn width(links: &Links) -> usize {
    usize::try_from(links.width).unwrap_or(usize::MAX).max(1)
}

fn gather<T: Copy>(values: &[T], rows: &[usize]) -> Vec<T> {
    let values = rows.iter().filter_map(|row| values.get(*row));
    values.copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_without_their_vertices_are_refused() {
        let mut result = QueryResult::default();
        result.objects = vec![7];
        let vertices = vec![0];
        let items = vec![ObjectItems {
            vertices,
            ..ObjectItems::default()
        }];
        let split = ObjectSplit {
            result: &result,
            items,
            unowned: 0,
            between: 0,
        };
        assert!(matches!(split.object(0), Err(FileFault::Broken(_))));
    }
}
