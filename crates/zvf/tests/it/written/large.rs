//! Geometry written in batches makes the same store as geometry written at once.

use std::{
    collections::BTreeMap,
    error::Error,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use serde_json::Value;
use zvf::{
    CreateOptions, GeometryBatches, GeometrySource, LinkNumbering, OpenOptions, TaskPhase,
    TaskPlan, TaskPlanOptions, TaskRunner,
};
use zvf_build::{
    BuildError, Design, Geometry, GeometryBuilder, GeometryKind, NumericColumn, OutOfBounds,
    Profile, ShardingPolicy, VertexOwners, WritePlan,
};
use zvf_model::column::{Column, ColumnValues};

use super::random;
use crate::block_on;

/// Geometry split into batches.
struct BatchedGeometry {
    all: GeometryBuilder,
    next: usize,
    /// Attributes of objects that come with the batches, one row for each path.
    of_paths: Vec<Column>,
}

impl BatchedGeometry {
    fn new(all: GeometryBuilder) -> Self {
        Self {
            all,
            next: 0,
            of_paths: Vec::new(),
        }
    }

    /// Moves the attributes of objects to the batches; `None` if they are text or have no row for each
    /// path.
    fn with_attributes_of_paths(mut all: GeometryBuilder) -> Option<Self> {
        let ids = match &all.owners {
            VertexOwners::Paths { objects, .. } => objects.clone()?,
            VertexOwners::Unnamed | VertexOwners::Vertices(_) => return None,
        };
        let rows = match all.objects.take() {
            None => (0..ids.len()).collect(),
            Some(objects) if objects.len() == ids.len() => {
                let row = |id: &i64| objects.iter().position(|object| object == id);
                ids.iter().map(row).collect::<Option<Vec<usize>>>()?
            }
            Some(_) => return None,
        };
        let columns = std::mem::take(&mut all.object);
        let is_plain = |column: &Column| {
            column.nulls.is_none() && matches!(column.values, ColumnValues::Numeric(_))
        };
        if columns.is_empty() || !columns.iter().all(is_plain) || !all.fragment.is_empty() {
            return None;
        }
        let columns = columns
            .iter()
            .map(|column| column.take(rows.iter().copied()));
        Some(Self {
            of_paths: columns.collect(),
            ..Self::new(all)
        })
    }
}

impl GeometrySource for BatchedGeometry {
    fn next(&mut self, vertices: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        let all = &self.all;
        let first = self.next;
        let mut batch =
            Geometry::builder(NumericColumn::new(all.positions.kind, all.positions.width));
        let rows = if let Some(offsets) = all.owners.offsets() {
            let parts = offsets.len() - 1;
            if first >= parts {
                return Ok(None);
            }
            let mut last = first + 1;
            while last < parts && offsets[last] - offsets[first] < vertices as u64 {
                last += 1;
            }
            self.next = last;
            let ends = offsets[first..=last].iter();
            let ids = all.owners.ids().map(|ids| ids[first..last].to_vec());
            batch = batch.paths(ends.map(|end| end - offsets[first]).collect(), ids);
            let columns = self.of_paths.iter();
            batch.object = columns.map(|column| column.take(first..last)).collect();
            offsets[first] as usize..offsets[last] as usize
        } else {
            if first >= all.vertices() {
                return Ok(None);
            }
            self.next = (first + vertices).min(all.vertices());
            let rows = first..self.next;
            if let Some(ids) = all.owners.ids() {
                batch = batch.object_ids(ids[rows.clone()].to_vec());
            }
            rows
        };
        let size = all.positions.row_size();
        batch.positions.bytes = all.positions.bytes[rows.start * size..rows.end * size].to_vec();
        let vertex = all
            .vertex
            .iter()
            .map(|attribute| attribute.take(rows.clone()));
        batch.vertex = vertex.collect();
        Ok(Some(batch.build().unwrap()))
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.next = 0;
        Ok(())
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        Ok(self.all.clone().take_tables().build()?)
    }
}

/// Creates a store from shares of a source. Every task runs twice, the last first, and the plan is
/// read from JSON before each step.
async fn create_from_shares(
    address: &str,
    source: &mut BatchedGeometry,
    design: Design,
    options: &CreateOptions,
) -> TaskPlan {
    let mut batches = Vec::new();
    while let Some(batch) = source.next(60).unwrap() {
        batches.push(batch);
    }
    let tables = source.tables().unwrap();
    create_from_batches(
        address,
        batches,
        LinkNumbering::Batch,
        &tables,
        design,
        options,
    )
    .await
}

/// Creates a store from batches in shares, as [`create_from_shares`] does.
async fn create_from_batches(
    address: &str,
    mut batches: Vec<Geometry>,
    numbering: LinkNumbering,
    tables: &Geometry,
    design: Design,
    options: &CreateOptions,
) -> TaskPlan {
    let open = OpenOptions::default();
    // The third share is empty.
    let third = batches.len() / 3;
    let last = batches.split_off(2 * third);
    let second = batches.split_off(third);
    let shares = [batches, second, Vec::new(), last];
    let mut tasks = TaskPlanOptions::default();
    tasks.tasks = Some(3);
    let planned = zvf::plan_shares(address, 4, design, tables, options, &tasks);
    let mut plan = planned.await.unwrap();
    let again = |plan: &TaskPlan| TaskPlan::from_json(&plan.to_json()).unwrap();
    assert_eq!(plan.status(&open).await.unwrap().missing, [0, 1, 2, 3]);
    for (share, batches) in shares.iter().enumerate().rev() {
        let mut batches = GeometryBatches::new(batches.clone(), numbering);
        assert!(plan.advance(&open).await.is_err());
        assert!(again(&plan).fill(share, &mut batches, &open).await.unwrap());
        assert!(!plan.fill(share, &mut batches, &open).await.unwrap());
    }
    assert!(plan.run(0, &open).await.is_err() && plan.commit_in_memory(&open).await.is_err());
    while plan.phase() != TaskPhase::Write {
        let next = plan.advance(&open).await.unwrap();
        assert_eq!(plan.advance(&open).await.unwrap(), next);
        plan = again(&next);
        for task in (0..plan.tasks()).rev() {
            plan.run(task, &open).await.unwrap();
            assert!(!plan.run(task, &open).await.unwrap());
        }
        assert!(plan.status(&open).await.unwrap().missing.is_empty());
    }
    let committed = plan.commit_in_memory(&open).await.unwrap();
    committed.clean(&open).await.unwrap();
    committed
}

/// Runs every task twice in reverse order, as if the first worker had died after its work.
struct RunsTwice;

impl TaskRunner for RunsTwice {
    fn at_once(&self) -> usize {
        2
    }

    fn run(&self, tasks: &[PathBuf]) -> Result<(), Box<dyn Error + Send + Sync>> {
        for task in tasks.iter().rev().flat_map(|task| [task, task]) {
            block_on(zvf::run_task(task, &OpenOptions::default()))?;
        }
        Ok(())
    }
}

fn files(folder: &Path, prefix: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            files(&entry.path(), &format!("{name}/"), found);
        } else {
            found.insert(name, fs::read(entry.path()).unwrap());
        }
    }
}

/// Vertices of a case that its design stores.
#[derive(Clone, Copy, PartialEq)]
enum Stored {
    All,
    /// About half of them: the others are outside the bounds.
    Some,
}

impl Stored {
    /// Sets the bounds. Returns whether a vertex lies within them.
    fn apply(self, geometry: &GeometryBuilder, design: &mut Design) -> bool {
        if self == Self::All {
            return true;
        }
        let Some(rows) = geometry.positions.view() else {
            return false;
        };
        let corner = |better: fn(f64, f64) -> f64| -> Vec<f64> {
            let of_axis = |axis: u32| {
                let values = (0..rows.rows()).filter_map(|row| rows.value(row, axis));
                values.map(zvf::numeric::Value::to_f64).reduce(better)
            };
            (0..geometry.positions.width).filter_map(of_axis).collect()
        };
        let (lower, mut upper) = (corner(f64::min), corner(f64::max));
        let Some((first, last)) = lower.first().zip(upper.first_mut()) else {
            return false;
        };
        *last = f64::midpoint(*first, *last);
        design.bounds = Some((lower, upper));
        design.out_of_bounds = OutOfBounds::Drop;
        true
    }
}

fn is_all_outside<T>(made: &Result<T, zvf::Error>) -> bool {
    matches!(&made, Err(error) if matches!(error.cause(), Some(BuildError::AllOutside)))
}

/// Checks a random case. Returns whether it has been created with attributes of paths in the batches.
fn check(seed: u64, kind: GeometryKind, profile: Profile, stored: Stored) -> bool {
    let mut case = random::case(seed, kind, profile);
    // Ids are assigned across batches, where empty paths would change the numbers.
    case.geometry.owners.number_paths(0);
    let has_empty = case
        .geometry
        .owners
        .offsets()
        .as_ref()
        .is_some_and(|offsets| offsets.windows(2).any(|pair| pair[0] == pair[1]));
    let is_possible = stored.apply(&case.geometry, &mut case.design);
    if case.design.chunk_shape.is_none() || has_empty || !is_possible {
        return false;
    }
    if case.design.sharding == ShardingPolicy::Auto {
        case.design.sharding = ShardingPolicy::None;
    }
    case.design.fragment_owners = kind.is_paths() && seed.is_multiple_of(3);
    let folder = tempfile::tempdir().unwrap();
    // The name of the folder is stored in the root.
    let (whole, cut) = (folder.path().join("a/store"), folder.path().join("b/store"));
    let tasks = folder.path().join("c/store");
    let shared = folder.path().join("d/store");
    let inline = [folder.path().join("e/store"), folder.path().join("f/store")];
    let of_paths = BatchedGeometry::with_attributes_of_paths(case.geometry.clone());
    let has_inline = of_paths.is_some();
    let mut options = CreateOptions::default();
    let (geometry, design) = (case.geometry.clone(), case.design.clone());
    let at = |path: &Path| path.display().to_string();
    let about = format!("seed {seed}, {kind:?}, {:?}", case.design);
    let made = block_on(zvf::create(
        &at(&whole),
        geometry.build().unwrap(),
        design,
        &options,
    ));
    if is_all_outside(&made) {
        let mut source = BatchedGeometry::new(case.geometry);
        let address = at(&cut);
        let refused = zvf::create_from_source(&address, &mut source, case.design, &options);
        assert!(is_all_outside(&block_on(refused)), "{about}");
        return false;
    }
    made.unwrap();
    block_on(async {
        options.memory = Some(16 << 10);
        let mut source = BatchedGeometry::new(case.geometry);
        let design = case.design.clone();
        let written = zvf::create_from_source(&at(&cut), &mut source, design, &options)
            .await
            .unwrap_or_else(|error| panic!("{error:?}: {about}"));
        source.rewind().unwrap();
        options.runner = Some(Arc::new(RunsTwice));
        let design = case.design.clone();
        let again = zvf::create_from_source(&at(&tasks), &mut source, design, &options)
            .await
            .unwrap_or_else(|error| panic!("{error:?}: {about}"));
        assert_eq!(again, written, "{about}");
        source.rewind().unwrap();
        if let Some(mut of_paths) = of_paths {
            options.runner = None;
            let design = case.design.clone();
            let written =
                zvf::create_from_source(&at(&inline[0]), &mut of_paths, design, &options).await;
            written.unwrap_or_else(|error| panic!("{error:?}: {about}"));
            of_paths.rewind().unwrap();
            let design = case.design.clone();
            create_from_shares(&at(&inline[1]), &mut of_paths, design, &options).await;
        }
        let made = create_from_shares(&at(&shared), &mut source, case.design, &options).await;
        let report = Value::from(made.report().unwrap());
        let vertices = report["vertices"].as_u64();
        assert_eq!(vertices, Some(written.summary.vertices), "{about}");
    });
    same(&whole, &cut, &about);
    same(&whole, &tasks, &about);
    same(&whole, &shared, &about);
    for folder in inline.iter().filter(|_| has_inline) {
        same(&whole, folder, &about);
    }
    has_inline
}

/// Asserts that two folders hold the same files.
fn same(whole: &Path, other: &Path, about: &str) {
    let (mut expected, mut found) = (BTreeMap::new(), BTreeMap::new());
    files(whole, "", &mut expected);
    files(other, "", &mut found);
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&expected), names(&found), "{about}");
    for (name, bytes) in &expected {
        let found = &found[name];
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(bytes), text(found), "{name}, {about}");
        assert!(bytes == found, "{name}, {about}");
    }
}

#[test]
fn batches_make_the_same_store() {
    let kinds = [
        GeometryKind::Points,
        GeometryKind::Lines,
        GeometryKind::Streamlines,
    ];
    let mut inline = 0;
    for kind in kinds {
        for seed in 0..6 {
            inline += usize::from(check(seed, kind, Profile::V09, Stored::All));
            inline += usize::from(check(seed, kind, Profile::V08, Stored::All));
        }
    }
    assert!(inline > 2, "{inline}");
}

/// Regression test: batches kept objects without vertices, and rejected groups that named them.
#[test]
fn batches_drop_the_same_objects() {
    for kind in [GeometryKind::Points, GeometryKind::Streamlines] {
        for seed in 0..zvf_testkit::sample::cases(6) {
            check(seed, kind, Profile::V09, Stored::Some);
            check(seed, kind, Profile::V08, Stored::Some);
        }
    }
    for kind in [GeometryKind::Skeletons, GeometryKind::Graphs] {
        for seed in 0..zvf_testkit::sample::cases(3) {
            check_linked(seed, kind, Profile::V09, Stored::Some);
        }
    }
}

/// Regression test: a batch of paths without vertices was refused.
#[test]
fn batches_of_empty_paths_make_the_same_store() {
    let mut all = Geometry::builder(NumericColumn::float32(
        3,
        (0..36_u8).map(|at| f32::from(at % 7)),
    ));
    let ends = [0, 0, 0, 4, 4, 4, 4, 12, 12, 12];
    all = all.paths(ends.to_vec(), None);
    all.vertex = vec![Column::new(
        "fa",
        NumericColumn::float32(1, (0..12_u8).map(f32::from)),
    )];
    let mut design = Design::new(GeometryKind::Streamlines);
    design.chunk_shape = Some(vec![2.0; 3]);
    let folder = tempfile::tempdir().unwrap();
    let address = |name: &str| folder.path().join(name).display().to_string();
    let options = CreateOptions::new().seal(false);
    let stored = |name: &str| {
        let mut found = BTreeMap::new();
        files(&folder.path().join(name), "", &mut found);
        found.retain(|name, _| !name.starts_with(".zvf"));
        found
    };
    // One path in each batch: three of them have no vertices before the first vertex, and three after it.
    block_on(async {
        for (name, ids) in [("named", Some((20..29).collect())), ("numbered", None)] {
            let offsets = all.owners.offsets().unwrap().to_vec();
            all = all.paths(offsets, ids);
            let whole = address(&format!("{name}.whole"));
            let plan = WritePlan::new(all.clone().build().unwrap(), design.clone()).unwrap();
            zvf::create_from_plan(&whole, plan, &options).await.unwrap();
            let streamed = address(&format!("{name}.streamed"));
            let mut source = OnePath(BatchedGeometry::new(all.clone()));
            zvf::create_from_source(&streamed, &mut source, design.clone(), &options)
                .await
                .unwrap();
            let shared = address(&format!("{name}.shared"));
            source.rewind().unwrap();
            let mut batches = Vec::new();
            while let Some(batch) = source.next(1).unwrap() {
                batches.push(batch);
            }
            assert_eq!(batches.len(), 9);
            let (numbering, tables) = (LinkNumbering::Batch, source.tables().unwrap());
            create_from_batches(
                &shared,
                batches,
                numbering,
                &tables,
                design.clone(),
                &options,
            )
            .await;
            let expected = stored(&format!("{name}.whole"));
            let index: Value =
                serde_json::from_slice(&expected["0/object_index/zarr.json"]).unwrap();
            assert_eq!(index["attributes"]["num_objects"], 9);
            for other in ["streamed", "shared"] {
                let found = stored(&format!("{name}.{other}"));
                let names =
                    |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
                assert_eq!(names(&found), names(&expected), "{name}.{other}");
                for (file, bytes) in &expected {
                    let is_root = file == "zarr.json";
                    assert!(is_root || &found[file] == bytes, "{name}.{other}: {file}");
                }
            }
        }
    });
}

/// Gives one path at a time.
struct OnePath(BatchedGeometry);

impl GeometrySource for OnePath {
    fn next(&mut self, _: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        self.0.next(0)
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.0.rewind()
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        self.0.tables()
    }
}

/// Returns the vertices and links with these numbers. The geometry has no paths.
fn taken(all: &GeometryBuilder, rows: &[usize], links: &[usize]) -> GeometryBuilder {
    let (rows, links) = (rows.iter().copied(), links.iter().copied());
    let width = all.links.width;
    let columns = |columns: &[Column], rows: &[usize]| -> Vec<Column> {
        let columns = columns.iter();
        columns.map(|one| one.take(rows.iter().copied())).collect()
    };
    let own: Vec<usize> = links.clone().collect();
    let vertices: Vec<usize> = rows.clone().collect();
    let ends = links.flat_map(|link| &all.links.ends[link * width..(link + 1) * width]);
    let geometry = Geometry::builder(all.positions.take(rows.clone()).unwrap())
        .links(width, ends.copied().collect())
        .vertex(columns(&all.vertex, &vertices));
    let geometry = match all.owners.ids() {
        Some(ids) => geometry.object_ids(rows.map(|row| ids[row]).collect()),
        None => geometry,
    };
    if own.is_empty() {
        geometry
    } else {
        geometry.link(columns(&all.link, &own))
    }
}

/// Returns skeletons in which the vertices of each tree follow each other, and so do its links, and
/// the number of vertices and links of each tree.
fn tree_by_tree(all: &GeometryBuilder) -> (GeometryBuilder, Vec<[usize; 2]>) {
    let mut parent: Vec<Option<usize>> = vec![None; all.vertices()];
    for link in all.links.ends.chunks_exact(2) {
        parent[link[0] as usize] = Some(link[1] as usize);
    }
    let root = |vertex: usize| {
        let mut root = vertex;
        while let Some(next) = parent[root] {
            root = next;
        }
        root
    };
    let mut rows: Vec<usize> = (0..all.vertices()).collect();
    rows.sort_by_key(|vertex| root(*vertex));
    let mut links: Vec<usize> = (0..all.links.len()).collect();
    links.sort_by_key(|link| root(all.links.ends[link * 2] as usize));
    let mut sorted = taken(all, &rows, &links);
    let mut number = vec![0; rows.len()];
    for (at, row) in (0..).zip(&rows) {
        number[*row] = at;
    }
    for end in &mut sorted.links.ends {
        *end = number[*end as usize];
    }
    (sorted.objects, sorted.object) = (all.objects.clone(), all.object.clone());
    (sorted.groups, sorted.group) = (all.groups.clone(), all.group.clone());
    let trees = rows
        .chunk_by(|a, b| root(*a) == root(*b))
        .map(|tree| [tree.len(), tree.len() - 1])
        .collect();
    (sorted, trees)
}

/// Batches of trees, with links that count from the batch or from the input.
fn batches_of_trees(
    all: &GeometryBuilder,
    trees: &[[usize; 2]],
    numbering: LinkNumbering,
) -> Vec<GeometryBuilder> {
    let (mut vertex, mut link) = (0, 0);
    let batches = trees.chunks(2).map(|trees| {
        let vertices: usize = trees.iter().map(|tree| tree[0]).sum();
        let links: usize = trees.iter().map(|tree| tree[1]).sum();
        let rows: Vec<usize> = (vertex..vertex + vertices).collect();
        let own: Vec<usize> = (link..link + links).collect();
        let mut batch = taken(all, &rows, &own);
        if numbering == LinkNumbering::Batch {
            for end in &mut batch.links.ends {
                *end -= vertex as i64;
            }
        }
        (vertex, link) = (vertex + vertices, link + links);
        batch
    });
    batches.collect()
}

/// Batches of vertices and of links in turn, so that links refer to vertices of earlier and of
/// later batches.
fn batches_of_a_graph(all: &GeometryBuilder) -> Vec<GeometryBuilder> {
    let mut batches = Vec::new();
    let (vertices, links) = (all.vertices(), all.links.len());
    for step in 0..5 {
        let part =
            |count: usize| -> Vec<usize> { (count * step / 5..count * (step + 1) / 5).collect() };
        // Batches of links alone have no positions, and thus no axes.
        let links = taken(all, &[], &part(links));
        let none = Geometry::builder(NumericColumn::new(all.positions.kind, 1));
        let links_alone = none.links(links.links.width, links.links.ends);
        batches.push(links_alone.link(links.link));
        batches.push(taken(all, &part(vertices), &[]));
    }
    batches.retain(|batch| batch.vertices() > 0 || !batch.links.is_empty());
    batches
}

/// Checks that tasks, and one process that reads batches, write the same store of random geometry with
/// links as one process that has the whole geometry.
fn check_linked(seed: u64, kind: GeometryKind, profile: Profile, stored: Stored) -> bool {
    let mut case = random::case(seed, kind, profile);
    let mut all = case.geometry;
    all.link.retain(|column| {
        column.nulls.is_none() && matches!(column.values, ColumnValues::Numeric(_))
    });
    let is_possible = stored.apply(&all, &mut case.design) && all.fragment.is_empty();
    if case.design.chunk_shape.is_none() || !is_possible || all.links.is_empty() {
        return false;
    }
    if case.design.sharding == ShardingPolicy::Auto {
        case.design.sharding = ShardingPolicy::None;
    }
    let mut batches = Vec::new();
    match kind {
        GeometryKind::Skeletons => {
            let trees;
            (all, trees) = tree_by_tree(&all);
            for numbering in [LinkNumbering::Batch, LinkNumbering::Input] {
                batches.push((batches_of_trees(&all, &trees, numbering), numbering));
            }
        }
        _ => batches.push((batches_of_a_graph(&all), LinkNumbering::Input)),
    }
    let tables = BatchedGeometry::new(all.clone()).tables().unwrap();
    let whole = taken(
        &all,
        &(0..all.vertices()).collect::<Vec<_>>(),
        &(0..all.links.len()).collect::<Vec<_>>(),
    );
    batches.push((vec![whole], LinkNumbering::Batch));
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).join("store");
    let text = |path: &Path| path.display().to_string();
    let about = format!("seed {seed}, {kind:?}, {:?}", case.design);
    let design = || case.design.clone();
    let mut options = CreateOptions::default();
    let expected = at("whole");
    let written = block_on(zvf::create(
        &text(&expected),
        &all.build().unwrap(),
        design(),
        &options,
    ));
    if is_all_outside(&written) {
        return false;
    }
    block_on(async {
        let written = written.unwrap_or_else(|error| panic!("{error:?}: {about}"));
        options.memory = Some(16 << 10);
        for (number, (batches, numbering)) in batches.into_iter().enumerate() {
            let built = batches.into_iter().map(|batch| batch.build().unwrap());
            let batches: Vec<Geometry> = built.collect();
            let shared = at(&format!("shares-{number}"));
            let made = create_from_batches(
                &text(&shared),
                batches.clone(),
                numbering,
                &tables,
                design(),
                &options,
            )
            .await;
            let vertices = Value::from(made.report().unwrap())["vertices"].as_u64();
            assert_eq!(vertices, Some(written.summary.vertices), "{about}");
            same(&expected, &shared, &about);
            // One process reads all batches and plans the tasks.
            let planned = at(&format!("planned-{number}"));
            let mut source = WithTables {
                share: GeometryBatches::new(batches.clone(), numbering),
                tables: tables.clone(),
            };
            let (open, tasks) = (OpenOptions::default(), TaskPlanOptions::default());
            let address = text(&planned);
            let plan = zvf::plan_create(&address, &mut source, design(), &options, &tasks)
                .await
                .unwrap_or_else(|error| panic!("{error:?}: {about}"));
            assert_eq!(plan.phase(), TaskPhase::Write);
            for task in 0..plan.tasks() {
                plan.run(task, &open).await.unwrap();
            }
            let plan = plan.commit_in_memory(&open).await.unwrap();
            plan.clean(&open).await.unwrap();
            same(&expected, &planned, &about);
            // One process creates the store.
            let created = at(&format!("created-{number}"));
            let mut source = WithTables {
                share: GeometryBatches::new(batches.clone(), numbering),
                tables: tables.clone(),
            };
            let address = text(&created);
            let made = zvf::create_from_source(&address, &mut source, design(), &options)
                .await
                .unwrap_or_else(|error| panic!("{error:?}: {about}"));
            assert_eq!(made.summary.vertices, written.summary.vertices, "{about}");
            assert_eq!(made.unfinished, None, "{about}");
            same(&expected, &created, &about);
        }
    });
    true
}

/// Batches with tables.
struct WithTables {
    share: GeometryBatches,
    tables: Geometry,
}

impl GeometrySource for WithTables {
    fn next(&mut self, vertices: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        self.share.next(vertices)
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.share.rewind()
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        Ok(self.tables.clone())
    }

    fn link_numbering(&self) -> LinkNumbering {
        self.share.link_numbering()
    }
}

#[test]
fn tasks_store_links_as_one_process() {
    let mut checked = 0;
    for kind in [
        GeometryKind::Skeletons,
        GeometryKind::Graphs,
        GeometryKind::Mesh,
    ] {
        for seed in 0..zvf_testkit::sample::cases(2) {
            checked += usize::from(check_linked(seed, kind, Profile::V09, Stored::All));
            checked += usize::from(check_linked(seed, kind, Profile::V08, Stored::All));
        }
    }
    assert!(checked > 4, "{checked}");
}

/// A source that counts its passes.
struct CountedPasses {
    source: BatchedGeometry,
    ended: usize,
}

impl GeometrySource for CountedPasses {
    fn next(&mut self, vertices: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        let batch = self.source.next(vertices)?;
        self.ended += usize::from(batch.is_none());
        Ok(batch)
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.source.rewind()
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        self.source.tables()
    }
}

/// The first estimate comes from a sample, before the rows are read again and copied.
#[test]
fn a_refused_plan_costs_one_pass() {
    for (side, chunk, chunks) in [
        (150_u16, 0.5, 22_500_u64),
        (500, 10.0, 2_500),
        (500, 1.0, 250_000),
    ] {
        let rows =
            (0..side).flat_map(|y| (0..side).flat_map(move |x| [f32::from(x), f32::from(y)]));
        let all = Geometry::builder(NumericColumn::float32(2, rows));
        let vertices = all.vertices() as u64;
        let mut source = CountedPasses {
            source: BatchedGeometry::new(all),
            ended: 0,
        };
        let found = Arc::new(Mutex::new(None));
        let seen_estimate = Arc::clone(&found);
        let options = CreateOptions::default().check(Arc::new(move |estimate| {
            *seen_estimate.lock().unwrap() = Some(estimate.clone());
            Err("not wanted".into())
        }));
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("a.zv").display().to_string();
        let design = Design::new(GeometryKind::Points).chunk_shape([chunk; 2]);
        let written = zvf::create_from_source(&at, &mut source, design, &options);
        let error = block_on(written).unwrap_err();
        assert!(error.to_string().contains("not wanted"), "{error}");
        assert_eq!(source.ended, 1);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let estimate = found.lock().unwrap().clone().unwrap();
        assert_eq!(estimate.vertices, vertices);
        // Within a tenth, and exact if the sample is everything.
        let error = estimate.chunks.abs_diff(chunks);
        let is_exact = vertices <= 100_000;
        assert!(
            error * 10 <= chunks && (error == 0 || !is_exact),
            "{estimate:?}"
        );
    }
}

/// Gives one batch whose columns disagree.
struct Disagreeing;

impl GeometrySource for Disagreeing {
    fn next(&mut self, _: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        let batch = Geometry::builder(NumericColumn::float32(1, [0.0, 1.0]));
        let one = Column::new("a", NumericColumn::float32(1, [0.5]));
        Ok(Some(batch.vertex(vec![one]).build()?))
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        Ok(Geometry::new(NumericColumn::float32(1, [])))
    }
}

/// The error names the column, as that of whole geometry does, and is not one of the source.
#[test]
fn batches_whose_columns_disagree_are_invalid_input() {
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().join("a.zv").display().to_string();
    let design = Design::new(GeometryKind::Points);
    let options = CreateOptions::default();
    let mut source = Disagreeing;
    let made = zvf::create_from_source(&address, &mut source, design, &options);
    let error = block_on(made).unwrap_err();
    assert!(!error.is_from_caller() && error.kind() == zvf::ErrorKind::InvalidInput);
    let expected = "vertex attribute \"a\" has 1 rows, but 2 are needed";
    assert_eq!(error.to_string(), expected);
}
