//! Recorded stores of every generation: damage of a node has one meaning.

use zvf::{
    Dataset, Error, GeometryBuilder, IntoGeometry, LevelChoice, LevelId, Query, Severity,
    ValidateOptions, validate,
};
use zvf_catalog::{Catalog, CatalogError, Selection};
use zvf_dataset::base;
use zvf_model::layout::ArrayRole;
use zvf_query::QueryError;
use zvf_testkit::golden::{Files, Golden};

use super::{
    Answers, Damage, Refusal, all_damage, change, damaged, in_memory, migrate, tables, without_copy,
};
use crate::block_on;

/// Reads everything in all levels.
async fn read(files: &Files) -> Result<(), Error> {
    let listed = Dataset::open(in_memory(files)).await?;
    // Levels that the root does not list are migrated too.
    let dataset = base::surveyed(&listed).await?;
    let catalog = dataset.catalog();
    for level in dataset.levels() {
        dataset
            .query(&Query::new().level(LevelChoice::Number(*level)))
            .await?;
        tables(&catalog, *level).await?;
        for delta in catalog.stored_link_deltas(*level).await? {
            let all = Selection::All;
            catalog.stored_links(*level, delta, &all, false).await?;
        }
        for part in [ArrayRole::VertexFragments, ArrayRole::LinkFragments] {
            cells(&catalog, *level, &part).await?;
        }
        for geometry in catalog.composite(*level).await? {
            let kind = &geometry.kind;
            cells(&catalog, *level, &ArrayRole::CompositeVertices(kind)).await?;
            catalog.stored_composite_links(*level, kind).await?;
        }
    }
    catalog.parametric().await?;
    catalog.headers().await?;
    Ok(())
}

/// Reads the cells of a part.
async fn cells(
    catalog: &Catalog<'_>,
    level: LevelId,
    part: &ArrayRole<'_>,
) -> Result<(), QueryError> {
    let Some(stored) = catalog.stored_array(level, part).await? else {
        return Ok(());
    };
    for cell in catalog.stored_cells(&stored, stored.chunks()).await {
        cell.map_err(CatalogError::from)?;
    }
    Ok(())
}

/// Returns whether a node belongs to the full level or to the store, and not to coarser levels, which
/// changes leave as they are.
fn is_changed(damage: &Damage) -> bool {
    let mut names = damage.node.split('/');
    match names.next().map(str::parse) {
        Some(Ok(0_u32)) => !damage.node.starts_with("0/links/+"),
        Some(Ok(_)) => false,
        _ => true,
    }
}

/// Returns the contents of a store as objects that it lacks, and the first of them.
async fn addition(files: &Files) -> Option<(GeometryBuilder, i64)> {
    let dataset = Dataset::open(in_memory(files)).await.ok()?;
    let result = dataset.query(&Query::new()).await.ok()?;
    let last = result.objects.iter().copied().max()?;
    let mut geometry = result.into_geometry().ok()?.into_builder();
    let lists = [geometry.objects.as_mut(), geometry.owners.ids_mut()];
    let lists = lists.into_iter().flatten();
    for id in lists.chain(geometry.groups.values_mut()).flatten() {
        *id += last + 1;
    }
    let first = geometry.objects.as_ref()?.first().copied()?;
    Some((geometry, first))
}

/// Returns the errors that validation reports.
async fn errors(files: &Files) -> Option<Vec<String>> {
    let report = validate(in_memory(files), &ValidateOptions::default()).await;
    let findings = report.ok()?.findings.into_iter();
    let errors = findings.filter(|finding| finding.rule.severity == Severity::Error);
    let lines = errors.map(|finding| {
        let place = finding.location.unwrap_or_default();
        let (code, path) = (finding.rule.code, finding.path);
        format!("{code} {path} {place} {}", finding.message)
    });
    Some(lines.collect())
}

/// Returns the folders of the stores of an archive.
fn stores(golden: &Golden) -> Vec<String> {
    let mut stores: Vec<String> = Vec::new();
    let mut nodes: Vec<&str> = golden
        .files()
        .filter_map(|(path, _)| path.strip_suffix("/zarr.json"))
        .collect();
    nodes.sort_unstable();
    for node in nodes {
        if !stores
            .iter()
            .any(|store| node.starts_with(&format!("{store}/")))
        {
            stores.push(node.to_owned());
        }
    }
    stores
}

/// Number of damages of an archive that are tested.
const SAMPLE: u64 = 60;

/// Numbers of the stores of an archive.
#[derive(Debug, PartialEq, Eq)]
struct Stores {
    /// Stores that queries or migration refuse without damage, which are not tested.
    refused: usize,
    /// Stores to which their own contents can be added.
    edited: usize,
}

fn check(archive: &str, expected: &Stores) {
    let golden = Golden::open(archive);
    let mut subjects = Vec::new();
    for name in stores(&golden) {
        let mut files = golden.store(&name);
        without_copy(&mut files);
        let all = all_damage(&files);
        subjects.push((name, files, all));
    }
    let count: usize = subjects.iter().map(|(_, _, all)| all.len()).sum();
    let cases = usize::try_from(zvf_testkit::sample::cases(SAMPLE)).unwrap();
    let step = (count / cases).max(1);
    let mut before = 0;
    let (mut faults, mut refused) = (Vec::new(), 0);
    let mut tested = Stores {
        refused: 0,
        edited: 0,
    };
    for (name, whole, all) in subjects {
        // Every `step`-th damage of the archive.
        let skipped = (step - before % step) % step;
        before += all.len();
        block_on(async {
            if read(&whole).await.is_err() || migrate(&whole).await.is_err() {
                tested.refused += 1;
                return;
            }
            let known = errors(&whole).await.unwrap();
            let mut change_of = addition(&whole).await;
            if let Some((geometry, object)) = &change_of
                && change(&whole, geometry, *object).await.is_err()
            {
                change_of = None;
            }
            tested.edited += usize::from(change_of.is_some());
            for damage in all.iter().skip(skipped).step_by(step) {
                let mut files = whole.clone();
                if !damaged(&mut files, damage) {
                    continue;
                }
                let reader = read(&files).await.map_err(Refusal::from);
                let editor = match &change_of {
                    Some((geometry, object)) => {
                        let changed = change(&files, geometry, *object).await;
                        match changed.map_err(Refusal::from) {
                            Ok(()) if !is_changed(damage) => reader.clone(),
                            changed => changed,
                        }
                    }
                    None => reader.clone(),
                };
                let found = errors(&files).await;
                let answers = Answers {
                    editor,
                    migration: migrate(&files).await.map_err(Refusal::from),
                    is_reported: found
                        .is_some_and(|found| found.iter().any(|line| !known.contains(line))),
                    reader,
                };
                refused += usize::from(answers.reader.is_err());
                answers.compare(&name, damage, &mut faults);
            }
        });
    }
    let count = faults.len();
    assert!(
        faults.is_empty(),
        "{tested:?} {refused} {count} faults\n{}",
        faults.join("\n")
    );
    assert_eq!(tested, *expected);
    assert!(refused > 10, "{refused}");
}

/// Expects that no store of an archive can be changed, and that `refused` cannot be read.
const fn unedited(refused: usize) -> Stores {
    Stores { refused, edited: 0 }
}

#[test]
fn nodes_of_0_6_have_one_meaning() {
    check("zvf-06", &unedited(1));
}

#[test]
fn nodes_of_0_7_have_one_meaning() {
    check("zvf-07", &unedited(1));
}

#[test]
fn nodes_of_0_8_have_one_meaning() {
    check("zvf-08", &unedited(8));
}

#[test]
fn nodes_of_0_9_have_one_meaning() {
    let expected = Stores {
        refused: 2,
        edited: 31,
    };
    check("zvf-09", &expected);
}

#[test]
fn nodes_of_examples_have_one_meaning() {
    let expected = Stores {
        refused: 0,
        edited: 8,
    };
    check("zvf-examples", &expected);
}

#[test]
fn nodes_of_drafts_have_one_meaning() {
    let expected = Stores {
        refused: 3,
        edited: 5,
    };
    check("zvf-drafts", &expected);
}

#[test]
fn nodes_of_small_stores_have_one_meaning() {
    let expected = Stores {
        refused: 1,
        edited: 6,
    };
    check("zvf-small", &expected);
}
