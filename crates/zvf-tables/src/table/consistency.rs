//! Consistency check of a query result, so that writers need not repeat it.

use zvf::{Column, ColumnValues, Links, Parts, QueryResult, Scope};

use crate::FileFault;

/// Checks that columns have one row per item, that dictionary codes have a word, and that parts
/// and links refer to existing vertices.
///
/// # Errors
///
/// [`FileFault`] if the result contradicts itself.
pub fn check(result: &QueryResult) -> Result<(), FileFault> {
    let vertices = result.positions.len();
    if result.positions.view().is_none() {
        return Err(FileFault::Broken("positions end inside a row"));
    }
    if vertices > 0 && result.positions.row_len() != result.axes.len() {
        return Err(FileFault::Broken("axes do not fit positions"));
    }
    if let Some(ids) = &result.row_ids {
        rows("row_ids", ids.len(), vertices)?;
    }
    if let Some(ids) = &result.object_ids {
        rows("object_ids", ids.len(), vertices)?;
    }
    if let Some(these) = &result.parts {
        parts(these, vertices)?;
    }
    let links = result.links.as_ref();
    if let Some(these) = links {
        ends(these, vertices)?;
    }
    for scope in Scope::ALL {
        let needed = match scope {
            Scope::Link => links.map_or(0, Links::len),
            Scope::Object => result.objects.len(),
            // A result has no attributes of groups.
            Scope::Vertex | Scope::Fragment | Scope::Group => vertices,
        };
        columns(scope.name(), result.columns(scope), needed)?;
    }
    Ok(())
}

fn parts(parts: &Parts, vertices: usize) -> Result<(), FileFault> {
    let mut last = 0;
    for (at, offset) in parts.offsets.iter().enumerate() {
        if *offset < last || at == 0 && *offset != 0 {
            return Err(FileFault::Broken("parts do not ascend from 0"));
        }
        last = *offset;
    }
    if usize::try_from(last) != Ok(vertices) {
        return Err(FileFault::Broken("parts do not end with the vertices"));
    }
    let spans = parts.offsets.len().saturating_sub(1);
    rows("part_objects", parts.objects.len(), spans)
}

fn ends(links: &Links, vertices: usize) -> Result<(), FileFault> {
    let width = usize::try_from(links.width).unwrap_or(usize::MAX);
    if links.ends.len().checked_rem(width) != Some(0) {
        return Err(FileFault::Broken("links end inside a row"));
    }
    let is_there = |end: &u64| usize::try_from(*end).is_ok_and(|end| end < vertices);
    if !links.ends.iter().all(is_there) {
        return Err(FileFault::Broken(
            "a link refers to a vertex that does not exist",
        ));
    }
    Ok(())
}

fn columns(scope: &str, columns: &[Column], needed: usize) -> Result<(), FileFault> {
    for column in columns {
        let name = || format!("{scope}.{}", column.name);
        rows(&name(), column.values.len(), needed)?;
        if let Some(missing) = &column.nulls {
            rows(&format!("{}.missing", name()), missing.len(), needed)?;
        }
        match &column.values {
            ColumnValues::Numeric(rows) if rows.view().is_none() => {
                return Err(FileFault::Broken("an attribute ends inside a row"));
            }
            ColumnValues::Dictionary { codes, words } => {
                let is_known = |code: &u32| usize::try_from(*code).is_ok_and(|c| c < words.len());
                let mut rows = codes.iter().enumerate();
                if !rows.all(|(row, code)| is_known(code) || column.is_null(row)) {
                    return Err(FileFault::Broken("a word is not in its dictionary"));
                }
            }
            ColumnValues::Numeric(_) => {}
        }
    }
    Ok(())
}

fn rows(column: &str, found: usize, needed: usize) -> Result<(), FileFault> {
    if found == needed {
        return Ok(());
    }
    Err(FileFault::Rows {
        column: column.to_owned(),
        found,
        needed,
    })
}
