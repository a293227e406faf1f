//! Queries from keyword arguments.

use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use zvf::{
    Bbox, Clip, LevelChoice, LevelId, Mode, Position, Predicate, Query, QueryPartition, Scope,
    Selection, Sphere, VertexBudget,
};
use zvf_model::{error_chain::error_chain, grid::ChunkCoord};

use crate::{
    errors::unusable,
    options::{Keywords, json, not_nan},
};

/// Builds a query. The arguments have the names and meanings of the options of `zvf query`.
pub(crate) fn query(keywords: &Bound<'_, PyDict>) -> PyResult<Query> {
    let mut given = Keywords::new(keywords)?;
    let mut query = Query::new();
    selected(&mut given, &mut query)?;
    query.level = level(&mut given)?;
    if let Some(value) = given.take("chunked_by") {
        query.chunked_by = Some(json(&value)?.into());
    }
    if let Some(names) = given.take("select") {
        query.columns = selection(&names)?;
    }
    query.owners = given.get("owners")?.unwrap_or(true);
    query.row_ids = given.get("row_ids")?.unwrap_or(false);
    query.limit = given.get("limit")?;
    query.own_level = given.get("own_level")?.unwrap_or(false);
    query.drill = given.get("drill")?;
    query.geometry = given.get("geometry")?;
    query.keep_going = given.get("keep_going")?.unwrap_or(false);
    let part = given.get::<String>("partition")?;
    given.finish()?;
    let Some(part) = part else {
        return Ok(query);
    };
    let part: QueryPartition = part.parse().map_err(|error| unusable(&error))?;
    Ok(part.query(&query))
}

/// Takes what a query selects.
pub(crate) fn selected(given: &mut Keywords<'_>, query: &mut Query) -> PyResult<()> {
    region(given, query)?;
    query.objects = given.ids("objects")?;
    query.groups = groups(given)?;
    query.chunks = chunks(given)?;
    if let Some(text) = given.get::<String>("where")? {
        let parsed = Predicate::parse(&text).map_err(|error| {
            PyValueError::new_err(format!("where {text:?}: {}", error_chain(&error)))
        });
        query.filter = Some(parsed?);
    }
    Ok(())
}

/// Takes a box.
fn bbox(given: &mut Keywords<'_>) -> PyResult<Option<Bbox>> {
    let Some(bounds) = given.two_rows("bbox")? else {
        return Ok(None);
    };
    let (low, high) = bounds.split_at(bounds.len() / 2);
    let bbox = Bbox::new(low, high).map_err(|error| unusable(&error))?;
    Ok(Some(bbox))
}

fn region(given: &mut Keywords<'_>, query: &mut Query) -> PyResult<()> {
    let bbox = bbox(given)?;
    let sphere = given.take("sphere");
    query.region = match (bbox, sphere) {
        (Some(_), Some(_)) => {
            return Err(PyValueError::new_err("give a bbox or a sphere, not both"));
        }
        (Some(bbox), None) => Some(bbox.into()),
        (None, Some(sphere)) => {
            let (centre, radius): (Vec<f64>, f64) = sphere.extract().map_err(|_| {
                PyValueError::new_err("a sphere is a pair of its centre and its radius")
            })?;
            let centre = not_nan("sphere", centre)?;
            if radius.is_nan() || radius < 0.0 {
                return Err(PyValueError::new_err(format!(
                    "the radius of the sphere is {radius}; give 0 or more"
                )));
            }
            let sphere = Sphere::new(&centre, radius).map_err(|error| unusable(&error))?;
            Some(sphere.into())
        }
        (None, None) => None,
    };
    if let Some(mode) = given.word("mode", Mode::parse, "touch, within or clip")? {
        query.mode = mode;
        query.predicate_mode = mode;
    }
    let clip = |word: &str| match word {
        "split" => Some(Clip::Split),
        "drop" => Some(Clip::Drop),
        _ => None,
    };
    query.clip = given
        .word("clip", clip, "split or drop")?
        .unwrap_or_default();
    let place = given.numbers("nearest")?;
    let k: Option<usize> = given.get("k")?;
    match (place, k) {
        (Some(_), Some(0)) => return Err(PyValueError::new_err("k is 0; it must be at least 1")),
        (Some(place), k) => {
            let place = Position::new(&place).map_err(|error| unusable(&error))?;
            *query = query.clone().nearest(place, k.unwrap_or(1));
        }
        (None, Some(_)) => return Err(PyValueError::new_err("k needs nearest, a position")),
        (None, None) => {}
    }
    Ok(())
}

fn level(given: &mut Keywords<'_>) -> PyResult<LevelChoice> {
    let number: Option<u32> = given.get("level")?;
    let scale: Option<f64> = given.get("scale")?;
    let vertices: Option<u64> = given.get("vertices")?;
    let budget: Option<u64> = given.get("budget")?;
    let focus = given
        .numbers("focus")?
        .map(|place| Position::new(&place).map_err(|error| unusable(&error)))
        .transpose()?;
    if focus.is_some() && budget.is_none() {
        return Err(PyValueError::new_err("focus needs a budget of vertices"));
    }
    match (number, scale, vertices, budget) {
        (None, None, None, None) => Ok(LevelChoice::default()),
        (Some(number), None, None, None) => Ok(LevelChoice::Number(LevelId::new(number))),
        (None, Some(scale), None, None) if scale > 0.0 => Ok(LevelChoice::Scale(scale)),
        (None, Some(_), None, None) => Err(PyValueError::new_err("scale must be above 0")),
        (None, None, Some(vertices), None) => Ok(LevelChoice::Vertices(vertices)),
        (None, None, None, Some(vertices)) => {
            Ok(LevelChoice::Budget(VertexBudget { vertices, focus }))
        }
        _ => Err(PyValueError::new_err(
            "give one of level, scale, vertices and budget",
        )),
    }
}

fn groups(given: &mut Keywords<'_>) -> PyResult<Option<Vec<u64>>> {
    let Some(ids) = given.ids("groups")? else {
        return Ok(None);
    };
    let ids = ids.into_iter().map(|id| {
        u64::try_from(id).map_err(|_| PyValueError::new_err(format!("there is no group {id}")))
    });
    ids.collect::<PyResult<_>>().map(Some)
}

fn chunks(given: &mut Keywords<'_>) -> PyResult<Option<Vec<ChunkCoord>>> {
    let chunks: Option<Vec<Vec<i64>>> = given.get("chunks")?;
    Ok(chunks.map(|chunks| chunks.into_iter().map(ChunkCoord::new).collect()))
}

/// Reads the names of attributes: `fa`, or `object.length` with a scope.
fn selection(names: &Bound<'_, PyAny>) -> PyResult<Selection> {
    if let Ok(name) = names.extract::<String>() {
        return Err(PyValueError::new_err(format!(
            "select needs a list of names, as [{name:?}]"
        )));
    }
    let names: Vec<String> = names
        .extract()
        .map_err(|_| PyValueError::new_err("select needs a list of names"))?;
    let scoped = names.into_iter().map(|name| {
        let mut scopes = Scope::ALL.into_iter();
        let found = scopes.find_map(|scope| {
            let rest = name.strip_prefix(scope.name())?.strip_prefix('.')?;
            Some((Some(scope), rest.to_owned()))
        });
        match found {
            Some((Some(Scope::Group), _)) => Err(PyValueError::new_err(format!(
                "{name}: groups have no rows in a result; select attributes of vertices, \
                 fragments, links or objects"
            ))),
            Some(found) => Ok(found),
            None => Ok((None, name)),
        }
    });
    Ok(Selection::Named(scoped.collect::<PyResult<_>>()?))
}
