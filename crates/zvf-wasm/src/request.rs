//! Requests: JSON with the members of `Query` in `viewer/pkg/src/types.ts`.

use serde_json::{Map, Value};
use zvf::{
    BatchOptions, Bbox, Clip, LevelChoice, LevelId, Mode, Position, Predicate, Query, Scope,
    Selection, Sphere, VertexBudget,
};
use zvf_model::{error_chain::error_chain, grid::ChunkCoord};

/// The members of a request, taken by name. Members left at the end are unknown.
#[derive(Debug)]
pub(crate) struct Request(Map<String, Value>);

type Taken<T> = Result<Option<T>, String>;

impl Request {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match serde_json::from_str(text) {
            Ok(Value::Object(members)) => Ok(Self(members)),
            Ok(_) => Err("a request is an object".to_owned()),
            Err(error) => Err(format!("the request is not JSON: {error}")),
        }
    }

    pub(crate) fn finish(self) -> Result<(), String> {
        match self.0.keys().next() {
            Some(name) => Err(format!("there is no option {name}")),
            None => Ok(()),
        }
    }

    /// Takes a member; `null` counts as absent.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    fn get<T>(&mut self, name: &str, what: &str, read: impl Fn(&Value) -> Option<T>) -> Taken<T> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        read(&value)
            .map(Some)
            .ok_or_else(|| format!("{name} is not {what}"))
    }

    pub(crate) fn whole(&mut self, name: &str) -> Taken<u64> {
        self.get(name, "a whole number", Value::as_u64)
    }

    pub(crate) fn flag(&mut self, name: &str) -> Taken<bool> {
        self.get(name, "true or false", Value::as_bool)
    }

    pub(crate) fn text(&mut self, name: &str) -> Taken<String> {
        self.get(name, "a text", |value| value.as_str().map(str::to_owned))
    }

    fn numbers(&mut self, name: &str) -> Taken<Vec<f64>> {
        self.get(name, "a list of numbers", |value| list(value, number))
    }

    fn position(&mut self, name: &str) -> Taken<Position> {
        let place = self.numbers(name)?;
        let place = place.map(|place| Position::new(&place)).transpose();
        place.map_err(|error| error_chain(&error))
    }

    pub(crate) fn level(&mut self) -> Taken<LevelId> {
        self.get("level", "the number of a level", |value| {
            value.as_u64()?.try_into().ok().map(LevelId::new)
        })
    }

    /// Takes the names among `groups`, and leaves the numbers.
    pub(crate) fn group_names(&mut self) -> Result<Vec<String>, String> {
        let Some(Value::Array(groups)) = self.0.get_mut("groups") else {
            return Ok(Vec::new());
        };
        let names = groups
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        groups.retain(|group| !group.is_string());
        Ok(names)
    }

    pub(crate) fn batch_options(&mut self) -> Result<BatchOptions, String> {
        let mut options = BatchOptions::new();
        if let Some(rows) = self.whole("batchRows")? {
            options = options.rows(usize::try_from(rows).unwrap_or(usize::MAX));
        }
        if let Some(bytes) = self.whole("batchBytes")? {
            options = options.bytes(bytes);
        }
        Ok(options)
    }

    /// Builds the query of the other members.
    pub(crate) fn query(mut self) -> Result<Query, String> {
        let mut query = Query::new();
        self.region(&mut query)?;
        query.level = self.level_choice()?;
        let ids = |value: &Value| list(value, id);
        query.objects = self.get("objects", "a list of ids", ids)?;
        let numbers = |value: &Value| list(value, Value::as_u64);
        query.groups = self.get("groups", "a list of numbers and names of groups", numbers)?;
        let chunks = |value: &Value| {
            list(value, |chunk| {
                list(chunk, Value::as_i64).map(ChunkCoord::new)
            })
        };
        query.chunks = self.get("chunks", "a list of chunks", chunks)?;
        if let Some(text) = self.text("where")? {
            let parsed = Predicate::parse(&text);
            query.filter =
                Some(parsed.map_err(|error| format!("where {text:?}: {}", error_chain(&error)))?);
        }
        query.chunked_by = self.take("chunkedBy").map(Into::into);
        let names = |value: &Value| list(value, |name| name.as_str().map(str::to_owned));
        if let Some(names) = self.get("select", "a list of names of attributes", names)? {
            query.columns =
                Selection::Named(names.into_iter().map(scoped).collect::<Result<_, _>>()?);
        }
        query.owners = self.flag("owners")?.unwrap_or(true);
        query.row_ids = self.flag("rowIds")?.unwrap_or(false);
        query.counter_clockwise = self.flag("counterClockwise")?.unwrap_or(false);
        query.own_level = self.flag("ownLevel")?.unwrap_or(false);
        query.keep_going = self.flag("keepGoing")?.unwrap_or(false);
        query.limit = self.whole("limit")?;
        query.geometry = self.text("geometry")?;
        query.drill = self.get("drill", "a number of levels", |value| {
            value.as_i64()?.try_into().ok()
        })?;
        self.finish()?;
        Ok(query)
    }

    fn region(&mut self, query: &mut Query) -> Result<(), String> {
        let rows = |value: &Value| {
            let [lower, upper] = value.as_array()?.as_slice() else {
                return None;
            };
            Some((list(lower, number)?, list(upper, number)?))
        };
        let bounds = self.get("bbox", "a pair of lists of numbers", rows)?;
        let sphere = self.take("sphere");
        query.region = match (bounds, sphere) {
            (Some(_), Some(_)) => return Err("give a bbox or a sphere, not both".to_owned()),
            (Some((lower, upper)), None) => Some(
                Bbox::new(&lower, &upper)
                    .map_err(|error| error_chain(&error))?
                    .into(),
            ),
            (None, Some(sphere)) => {
                let centre = sphere.get("centre").and_then(|centre| list(centre, number));
                let radius = sphere
                    .get("radius")
                    .and_then(number)
                    .filter(|radius| *radius >= 0.0);
                let (Some(centre), Some(radius)) = (centre, radius) else {
                    return Err("a sphere has a centre and a radius of at least 0".to_owned());
                };
                Some(
                    Sphere::new(&centre, radius)
                        .map_err(|error| error_chain(&error))?
                        .into(),
                )
            }
            (None, None) => None,
        };
        if let Some(word) = self.text("mode")? {
            let mode = Mode::parse(&word).ok_or("mode is touch, within or clip")?;
            (query.mode, query.predicate_mode) = (mode, mode);
        }
        query.clip = match self.text("clip")?.as_deref() {
            None | Some("split") => Clip::Split,
            Some("drop") => Clip::Drop,
            Some(_) => return Err("clip is split or drop".to_owned()),
        };
        match (self.position("nearest")?, self.whole("k")?) {
            (_, Some(0)) => return Err("k is 0; it must be at least 1".to_owned()),
            (Some(place), k) => {
                let k = usize::try_from(k.unwrap_or(1)).unwrap_or(usize::MAX);
                *query = query.clone().nearest(place, k);
            }
            (None, Some(_)) => return Err("k needs nearest, a position".to_owned()),
            (None, None) => {}
        }
        Ok(())
    }

    fn level_choice(&mut self) -> Result<LevelChoice, String> {
        let level = self.level()?.map(LevelChoice::Number);
        let scale = self.get("scale", "a number above 0", |value| {
            number(value).filter(|scale| *scale > 0.0)
        })?;
        let vertices = self.whole("vertices")?.map(LevelChoice::Vertices);
        let (budget, focus) = (self.whole("budget")?, self.position("focus")?);
        if focus.is_some() && budget.is_none() {
            return Err("focus needs a budget of vertices".to_owned());
        }
        let budget = budget.map(|vertices| LevelChoice::Budget(VertexBudget { vertices, focus }));
        let mut given = [level, scale.map(LevelChoice::Scale), vertices, budget]
            .into_iter()
            .flatten();
        match (given.next(), given.next()) {
            (choice, None) => Ok(choice.unwrap_or_default()),
            _ => Err("give one of level, scale, vertices and budget".to_owned()),
        }
    }
}

/// Reads a list.
fn list<T>(value: &Value, read: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    value.as_array()?.iter().map(read).collect()
}

/// Reads a number. Infinite ones are words, because JSON has none.
fn number(value: &Value) -> Option<f64> {
    let number = match value.as_str() {
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        _ => value.as_f64(),
    };
    number.filter(|number| !number.is_nan())
}

/// Reads an id. Large ones are texts, because numbers of JavaScript are not exact.
fn id(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

/// Reads the name of an attribute: `fa`, or `object.length` with a family.
pub(crate) fn scoped(name: String) -> Result<(Option<Scope>, String), String> {
    let mut scopes = Scope::ALL.into_iter();
    let found = scopes.find_map(|scope| {
        let rest = name.strip_prefix(scope.name())?.strip_prefix('.')?;
        Some((scope, rest.to_owned()))
    });
    match found {
        Some((Scope::Group, _)) => Err(format!(
            "{name}: groups have no rows in a result; select attributes of vertices, fragments, links or objects"
        )),
        Some((scope, rest)) => Ok((Some(scope), rest)),
        None => Ok((None, name)),
    }
}
