//! Chunks of a level built by other processes, with tasks passed as files.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value, json};
use zvf_build::coarsen::FragmentReference;
use zvf_model::{grid::ChunkCoord, level::LevelId};
use zvf_store::OpenOptions;

use super::{
    CrossLevel, PyramidOptions,
    build::Build,
    design::Coarsening,
    form,
    shards::Groups,
    source::{SortedLinks, Source},
    stats,
    tally::{Part, Tally, farther},
};
use crate::{
    dataset::Dataset,
    failure::Failure,
    task_runner::{TaskRunner, read_json, scratch_error, write_json},
    writer::run,
};

/// Number of tasks per process, so that all processes stay busy until the end.
const EACH: usize = 4;

impl Build<'_> {
    /// Builds all chunks by tasks that `runner` runs.
    pub(super) async fn hand_out(
        &mut self,
        runner: Arc<dyn TaskRunner>,
        groups: &Groups,
    ) -> Result<(), Failure> {
        if !self.shared.form.is_current() {
            return Err(Failure::NoPyramid {
                why: "only levels of stores of 0.9 are shared among processes; make them in one, or \
                      `zvf migrate` the store",
            });
        }
        let scratch = tempfile::tempdir().map_err(|source| Failure::Scratch {
            path: std::env::temp_dir().display().to_string(),
            source,
        })?;
        let shared = scratch.path().join("level.json");
        write_json(&shared, &self.attributes())?;
        let mut tasks = Vec::new();
        let ranges = groups.cut(runner.at_once().saturating_mul(EACH));
        for (number, range) in ranges.into_iter().enumerate() {
            let task = scratch.path().join(format!("task-{number}.json"));
            let result = scratch.path().join(format!("result-{number}"));
            let attributes = json!({
                "level": shared, "result": result, "first": range.start, "end": range.end,
            });
            write_json(&task, &attributes)?;
            tasks.push((task, result));
        }
        let files: Vec<PathBuf> = tasks.iter().map(|(task, _)| task.clone()).collect();
        run(move || runner.run(&files).map_err(Failure::Source)).await?;
        for (_, result) in tasks {
            let attributes = read_json(&result.with_extension("json"))?;
            let rows = attributes["rows"]
                .as_str()
                .ok_or_else(|| no_task(&result))?;
            let rows = Path::new(rows);
            let rows = fs::read(rows).map_err(|source| scratch_error(rows, source))?;
            let staged = attributes["staged"].to_string();
            self.transaction().merge_staged(staged.as_bytes()).await?;
            let tally = tally(&attributes["tally"], &rows);
            let tally = tally.ok_or_else(|| no_task(&result))?;
            self.tally.append(tally);
        }
        self.writer.expect(groups.len());
        self.writer.done(groups.len());
        Ok(())
    }

    /// Returns the description that all tasks of the level share.
    fn attributes(&mut self) -> Value {
        let transaction = self.transaction();
        let (id, base) = (transaction.id().to_owned(), transaction.base());
        let kept = self.shared.recipe.kept.as_ref();
        json!({
            "address": self.source.dataset.address(),
            "transaction": id,
            "base": base,
            "source": self.source.id.number(),
            "target": self.target.number(),
            "is_again": self.is_again,
            "cross_level": self.options.cross_level.name(),
            "depth": self.options.depth,
            "kept": kept.map(|kept| kept.iter().map(|kept| u8::from(*kept)).collect::<Vec<u8>>()),
            "zvf_pyramid": stats::describe(self),
        })
    }
}

/// Builds the chunks of a task.
pub(crate) async fn run_task(attributes: &Value, open: &OpenOptions) -> Result<(), Failure> {
    let name = |member: &str| attributes[member].as_str().map(PathBuf::from);
    let (Some(path), Some(result)) = (name("level"), name("result")) else {
        return Err(no_task(Path::new("task")));
    };
    let level = read_json(&path)?;
    let missing = || no_task(&path);
    let text = |member: &str| level[member].as_str().ok_or_else(missing);
    let number = |attributes: &Value| {
        attributes
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
    };
    let id = |member: &str| number(&level[member]).map(LevelId::new).ok_or_else(missing);
    let recipe = level.as_object().and_then(stats::recipe);
    let recipe = recipe.ok_or_else(missing)?;
    let address = text("address")?;
    let store = open.open(address)?.without_node_copy();
    let transaction = store.join_transaction(text("transaction")?).await?;
    if level["base"].as_u64() != Some(transaction.base()) {
        return Err(Failure::NoPyramid {
            why: "another writer changed the store; build the level again",
        });
    }
    let options = PyramidOptions {
        rules: recipe.rules,
        cross_level: CrossLevel::named(text("cross_level")?).ok_or_else(missing)?,
        depth: match &level["depth"] {
            Value::Null => None,
            depth => Some(number(depth).ok_or_else(missing)?),
        },
        open: open.clone(),
        ..PyramidOptions::default()
    };
    let coarsening = Coarsening {
        rules: options.rules.clone(),
        is_again: level["is_again"].as_bool().ok_or_else(missing)?,
    };
    let kept = match &level["kept"] {
        Value::Null => None,
        kept => {
            let kept = kept.as_array().ok_or_else(missing)?.iter();
            let kept = kept.map(|kept| Some(kept.as_u64()? == 1));
            Some(kept.collect::<Option<_>>().ok_or_else(missing)?)
        }
    };
    let dataset = Dataset::open_store(store).await?;
    let source = Source::open(&dataset, id("source")?, &coarsening).await?;
    let form = form(&dataset).await?;
    let mut build = Build::new(
        &source,
        &options,
        (&recipe.design, &coarsening),
        kept,
        (form, transaction, id("target")?),
    )?;
    let sorted: SortedLinks = source.sorted_links(&build.scale);
    let groups = build.chunk_groups();
    let at = |member: &str| {
        attributes[member]
            .as_u64()
            .and_then(|at| usize::try_from(at).ok())
    };
    let range = at("first")
        .zip(at("end"))
        .filter(|(_, end)| *end <= groups.len());
    let (first, end) = range.ok_or_else(missing)?;
    build.make_groups(&sorted, groups, first..end).await?;
    let mut bytes = Vec::new();
    build.count_written();
    let tally = told(&build.tally, &mut bytes);
    // If a task runs twice at the same time, the result names the rows file of the run that wrote
    // it.
    let folder = result.parent().unwrap_or(Path::new("."));
    let rows = tempfile::Builder::new().suffix(".rows").tempfile_in(folder);
    let kept = rows.and_then(|mut rows| {
        rows.write_all(&bytes)?;
        Ok(rows.keep()?.1)
    });
    let rows = kept.map_err(|source| scratch_error(&result, source))?;
    let staged = build.transaction().staged_journal();
    let staged: Value = serde_json::from_slice(&staged).map_err(|_| no_task(&result))?;
    write_json(
        &result.with_extension("json"),
        &json!({"tally": tally, "rows": rows, "staged": staged}),
    )
}

fn no_task(path: &Path) -> Failure {
    let source = std::io::Error::new(
        std::io::ErrorKind::InvalidData,
        "does not say what a task does or did",
    );
    scratch_error(path, source)
}

/// Returns the results of a task as JSON, and appends its row numbers to `bytes`.
fn told(tally: &Tally, bytes: &mut Vec<u8>) -> Value {
    for (named, chunk) in &tally.named {
        for number in [named.object, named.at, named.fragment, *chunk] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }
    let mut parents = Vec::new();
    for (chunk, rows) in &tally.parents {
        bytes.extend(rows.iter().flat_map(|row| row.to_le_bytes()));
        parents.push(json!([chunk.coords(), rows.len()]));
    }
    let put: Map<String, Value> = tally
        .put
        .iter()
        .map(|(path, part)| {
            let attributes = json!({"chunks": part.chunks, "says": part.attributes});
            (path.clone(), attributes)
        })
        .collect();
    let chunks: Vec<&[i64]> = tally.chunk_of.iter().map(ChunkCoord::coords).collect();
    json!({
        "rows": tally.rows, "names": tally.names, "chunks": tally.chunks, "links": tally.links,
        "physical": tally.physical, "between_levels": tally.between_levels,
        "between_chunks": tally.between_chunks, "is_untiled": tally.is_untiled,
        "error": tally.error, "objects": tally.objects, "bytes": tally.bytes,
        "named": tally.named.len(), "parents": parents, "put": put, "chunk_of": chunks,
    })
}

/// Parses the results that [`told`] returns.
fn tally(attributes: &Value, bytes: &[u8]) -> Option<Tally> {
    let count = |name: &str| attributes.get(name)?.as_u64();
    let coords = |attributes: &Value| {
        let coords = attributes.as_array()?.iter().map(Value::as_i64);
        coords.collect::<Option<Vec<i64>>>()
    };
    let (words, rest) = bytes.as_chunks::<4>();
    let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
    let mut named = Vec::new();
    for _ in 0..count("named")? {
        let object = words.next()?;
        let (at, fragment) = (words.next()?, words.next()?);
        let named_there = FragmentReference {
            object,
            at,
            fragment,
        };
        named.push((named_there, words.next()?));
    }
    let mut tally = Tally {
        rows: count("rows")?,
        names: count("names")?,
        chunks: count("chunks")?,
        links: count("links")?,
        physical: count("physical")?,
        between_levels: count("between_levels")?,
        between_chunks: count("between_chunks")?,
        is_untiled: attributes.get("is_untiled")?.as_bool()?,
        error: attributes.get("error")?.as_f64(),
        objects: count("objects")?,
        bytes: count("bytes")?,
        named,
        ..Tally::default()
    };
    for chunk in attributes.get("chunk_of")?.as_array()? {
        tally.chunk_of.push(ChunkCoord::new(coords(chunk)?));
    }
    for parents in attributes.get("parents")?.as_array()? {
        let chunk = ChunkCoord::new(coords(parents.get(0)?)?);
        let len = usize::try_from(parents.get(1)?.as_u64()?).ok()?;
        let rows: Vec<u32> = words.by_ref().take(len).collect();
        if rows.len() < len {
            return None;
        }
        tally.parents.insert(chunk, rows);
    }
    for (path, part) in attributes.get("put")?.as_object()? {
        let chunks = part.get("chunks")?.as_array()?.iter().map(coords);
        let part = Part {
            chunks: chunks.collect::<Option<_>>()?,
            attributes: part
                .get("says")
                .filter(|attributes| !attributes.is_null())
                .cloned(),
        };
        tally.put.insert(path.clone(), part);
    }
    let is_all = words.next().is_none() && rest.is_empty();
    let chunks = tally.chunk_of.len();
    let is_known = |(_, chunk): &(FragmentReference, u32)| (*chunk as usize) < chunks;
    (is_all && tally.named.iter().all(is_known)).then_some(tally)
}

impl Tally {
    /// Appends the results of another task.
    fn append(&mut self, other: Self) {
        let before = u32::try_from(self.chunk_of.len()).unwrap_or(u32::MAX);
        self.rows += other.rows;
        self.names += other.names;
        self.chunks += other.chunks;
        self.links += other.links;
        self.physical += other.physical;
        self.between_levels += other.between_levels;
        self.between_chunks += other.between_chunks;
        self.is_untiled |= other.is_untiled;
        self.error = farther(self.error, other.error);
        self.objects += other.objects;
        self.bytes += other.bytes;
        let named = other.named.into_iter();
        self.named
            .extend(named.map(|(named, chunk)| (named, chunk.saturating_add(before))));
        self.chunk_of.extend(other.chunk_of);
        self.parents.extend(other.parents);
        for (path, part) in other.put {
            let own = self.put.entry(path).or_default();
            own.chunks.extend(part.chunks);
            own.attributes = own.attributes.take().or(part.attributes);
        }
    }
}
