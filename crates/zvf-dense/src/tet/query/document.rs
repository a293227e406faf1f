//! Parsing of query documents.

use serde_json::{Map, Value};

use super::{
    AlignSpec, AxisSlice, Comparison, Condition, Edge, GroupBy, NamedReduction, Pad, TetQuery,
    TetQueryError as Error, WindowSpec,
};
use crate::reduce::Reduction;

/// Limits of the format.
const MAX_BYTES: usize = 1 << 20;
const MAX_NAME: usize = 1024;
const MAX_AXIS_LABEL: usize = 32;
const MAX_AXES: usize = 8;
const MAX_WINDOW: u64 = 1 << 20;

/// The reference implementation leaves NaN out of extremes, but not out of sums.
const REDUCTIONS: [(&str, Reduction); 10] = [
    ("sum", Reduction::Sum),
    ("mean", Reduction::Mean),
    ("min", Reduction::NanMin),
    ("max", Reduction::NanMax),
    ("count", Reduction::Count),
    ("var", Reduction::Var),
    ("std", Reduction::Std),
    ("nan_count", Reduction::NanCount),
    ("nan_mean", Reduction::NanMean),
    ("nan_std", Reduction::NanStd),
];

const FIELDS: &str = "dataset, selection, filter, group_by, window, align, layout_version, and the \
    reductions sum, mean, min, max, count, var, std, nan_count, nan_mean and nan_std";

fn value(field: impl Into<String>, fault: &'static str) -> Error {
    let field = field.into();
    Error::Value { field, fault }
}

fn object<'a>(value_of: &'a Value, field: &str) -> Result<&'a Map<String, Value>, Error> {
    value_of
        .as_object()
        .ok_or_else(|| value(field, "must be an object"))
}

/// Refuses members other than these.
fn only(
    members: &Map<String, Value>,
    field: &str,
    names: &[&str],
    known: &'static str,
) -> Result<(), Error> {
    let unknown = members.keys().find(|name| !names.contains(&name.as_str()));
    match unknown {
        None => Ok(()),
        Some(name) => Err(Error::Unknown {
            field: format!("{field}.{name}"),
            known,
        }),
    }
}

/// Returns a member that is a whole number of at least one.
fn positive(members: &Map<String, Value>, field: &str, name: &str) -> Result<Option<u64>, Error> {
    let Some(given) = members.get(name).filter(|given| !given.is_null()) else {
        return Ok(None);
    };
    let number = given.as_u64().filter(|number| *number > 0);
    let fault = || {
        value(
            format!("{field}.{name}"),
            "must be a whole number of at least 1",
        )
    };
    number.map(Some).ok_or_else(fault)
}

/// Parses an axis: its number, or its name.
fn axis(given: &Value, field: &str) -> Result<String, Error> {
    if let Some(number) = given.as_u64() {
        return Ok(number.to_string());
    }
    let name = given
        .as_str()
        .ok_or_else(|| value(field, "must be an axis, or a list of axes"))?;
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    let is_letter = |first: u8| first.is_ascii_alphabetic() || first == b'_';
    let is_rest = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let is_name = name.bytes().next().is_some_and(is_letter) && name.bytes().all(is_rest);
    if name.len() > MAX_AXIS_LABEL || !(is_number || is_name) {
        return Err(Error::Axis(name.to_owned()));
    }
    Ok(name.to_owned())
}

fn axes(given: &Value, field: &str) -> Result<Vec<String>, Error> {
    let axes: Vec<String> = match given.as_array() {
        Some(axes) => axes
            .iter()
            .map(|given| axis(given, field))
            .collect::<Result<_, _>>()?,
        None => vec![axis(given, field)?],
    };
    if axes.len() > MAX_AXES {
        return Err(value(field, "has more than 8 axes"));
    }
    Ok(axes)
}

impl TetQuery {
    /// Parses a JSON document.
    ///
    /// # Errors
    ///
    /// [`TetQueryError`](super::TetQueryError) for fields that do not exist, and for values and
    /// combinations that have no meaning.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > MAX_BYTES {
            return Err(Error::Long);
        }
        let document: Map<String, Value> = serde_json::from_str(text).map_err(Error::Json)?;
        let mut query = Self {
            dataset: String::new(),
            selection: None,
            reduction: None,
            filter: Vec::new(),
            groups: None,
            window: None,
            align: None,
        };
        for (name, given) in document.iter().filter(|(_, given)| !given.is_null()) {
            match name.as_str() {
                "layout_version" if given.as_u64() == Some(1) => {}
                "layout_version" => return Err(value(name, "must be 1")),
                "dataset" => query.dataset = dataset(given, "dataset")?,
                "selection" => query.selection = Some(selection(given)?),
                "filter" => query.filter = filter(given)?,
                "group_by" => query.groups = Some(groups(given)?),
                "window" => query.window = Some(window(given)?),
                "align" => query.align = Some(align(given)?),
                "operation" => {
                    let instead = "give the reduction itself, such as \"sum\": []";
                    return Err(Error::Nested("operation", instead));
                }
                "output" => return Err(Error::Nested("output", "the response is printed")),
                _ => query.set_reduction(name, given)?,
            }
        }
        query.check()?;
        Ok(query)
    }

    fn set_reduction(&mut self, name: &str, given: &Value) -> Result<(), Error> {
        let found = REDUCTIONS.into_iter().find(|(known, _)| *known == name);
        let Some((name, reduction)) = found else {
            return Err(Error::Unknown {
                field: name.to_owned(),
                known: FIELDS,
            });
        };
        if self.reduction.is_some() {
            return Err(value(
                name,
                "is one too many: a query has at most one reduction key",
            ));
        }
        self.reduction = Some(NamedReduction {
            name,
            reduction,
            axes: axes(given, name)?,
        });
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        if self.dataset.is_empty() {
            return Err(value("dataset", "must be a non-empty string"));
        }
        if self.align.is_some() {
            let others = [
                (self.reduction.is_some(), "a reduction"),
                (self.selection.is_some(), "`selection`"),
                (!self.filter.is_empty(), "`filter`"),
                (self.groups.is_some(), "`group_by`"),
                (self.window.is_some(), "`window`"),
            ];
            let other = others.into_iter().find(|(is_given, _)| *is_given);
            return other.map_or(Ok(()), |(_, other)| Err(Error::Combined("align", other)));
        }
        if self.window.is_some() && self.groups.is_some() {
            return Err(Error::Combined("window", "`group_by`"));
        }
        if self.reduction.is_none() {
            return Err(Error::NoReduction(match (&self.window, &self.groups) {
                (Some(_), _) => "`window`",
                (_, Some(_)) => "`group_by`",
                _ => "a query",
            }));
        }
        Ok(())
    }
}

fn dataset(given: &Value, field: &str) -> Result<String, Error> {
    let name = given
        .as_str()
        .filter(|name| !name.trim().is_empty())
        .ok_or_else(|| value(field, "must be a non-empty string"))?;
    if name.len() > MAX_NAME {
        return Err(value(field, "has more than 1024 bytes"));
    }
    Ok(name.to_owned())
}

fn selection(given: &Value) -> Result<Vec<AxisSlice>, Error> {
    let axes = given
        .as_array()
        .filter(|axes| axes.len() <= MAX_AXES)
        .ok_or_else(|| value("selection", "must be a list of at most 8 objects"))?;
    let parsed = axes.iter().enumerate().map(|(at, given)| {
        let field = format!("selection[{at}]");
        let members = object(given, &field)?;
        let names = ["start", "stop", "step", "start_label", "stop_label"];
        only(
            members,
            &field,
            &names,
            "start, stop, step, start_label and stop_label",
        )?;
        Ok(AxisSlice {
            start: edge(members, &field, "start", "start_label")?,
            stop: edge(members, &field, "stop", "stop_label")?,
            step: positive(members, &field, "step")?,
        })
    });
    parsed.collect()
}

fn edge(
    members: &Map<String, Value>,
    field: &str,
    number: &str,
    label: &str,
) -> Result<Option<Edge>, Error> {
    let given = |name: &str| members.get(name).filter(|given| !given.is_null());
    let fault = |name: &str, fault| value(format!("{field}.{name}"), fault);
    match (given(number), given(label)) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(fault(label, "excludes the position; give one of both")),
        (Some(at), None) => {
            let at = at.as_u64().map(Edge::Position);
            at.map(Some)
                .ok_or_else(|| fault(number, "must be a whole number"))
        }
        (None, Some(text)) => {
            let text = text.as_str().map(|text| Edge::Label(text.to_owned()));
            text.map(Some).ok_or_else(|| fault(label, "must be a text"))
        }
    }
}

fn filter(given: &Value) -> Result<Vec<Condition>, Error> {
    let members = object(given, "filter")?;
    let conditions = members.iter().map(|(name, given)| {
        let field = format!("filter.{name}");
        let comparison = match name.as_str() {
            "eq" => Comparison::Eq,
            "ne" => Comparison::Ne,
            "lt" => Comparison::Lt,
            "le" => Comparison::Le,
            "gt" => Comparison::Gt,
            "ge" => Comparison::Ge,
            "is_null" | "is_not_null" if given.as_bool() == Some(true) => {
                return Ok(Condition::Null(name == "is_null"));
            }
            "is_null" | "is_not_null" => return Err(value(field, "must be true")),
            _ => {
                return Err(Error::Unknown {
                    field,
                    known: "eq, ne, lt, le, gt, ge, is_null and is_not_null",
                });
            }
        };
        let number = given.as_f64();
        number
            .map(|number| Condition::Compare(comparison, number))
            .ok_or_else(|| value(field, "must be a number"))
    });
    conditions.collect()
}

fn groups(given: &Value) -> Result<GroupBy, Error> {
    let (by_labels, given) = match given.as_object() {
        None => (false, given),
        Some(members) => {
            only(members, "group_by", &["by", "axes"], "by and axes")?;
            if members.get("by").and_then(Value::as_str) != Some("labels") {
                return Err(value("group_by.by", "must be `labels`"));
            }
            (true, members.get("axes").unwrap_or(&Value::Null))
        }
    };
    let axes = given
        .as_array()
        .map(|_| axes(given, "group_by"))
        .transpose()?
        .filter(|axes| !axes.is_empty())
        .ok_or_else(|| value("group_by", "must be a list of at least one axis"))?;
    Ok(GroupBy { by_labels, axes })
}

fn window(given: &Value) -> Result<WindowSpec, Error> {
    let members = object(given, "window")?;
    let names = ["axis", "size", "mode", "pad", "step", "align", "min_count"];
    let known = "axis, size, mode, pad, step, align and min_count";
    only(members, "window", &names, known)?;
    let missing = |name: &str| value(format!("window.{name}"), "is missing");
    let size = positive(members, "window", "size")?.ok_or_else(|| missing("size"))?;
    if size > MAX_WINDOW {
        return Err(value("window.size", "is more than 1048576"));
    }
    let word = |name: &str| {
        let given = members.get(name).filter(|given| !given.is_null());
        given.map(|given| given.as_str().unwrap_or_default().to_owned())
    };
    let unknown = |what, word: &str, known| Error::Word {
        what,
        word: word.to_owned(),
        known,
    };
    let is_rolling = match word("mode").as_deref() {
        Some("bins") => false,
        Some("rolling") => true,
        Some(other) => return Err(unknown("window mode", other, "bins or rolling")),
        None => return Err(missing("mode")),
    };
    let pad = match word("pad").as_deref() {
        None | Some("none") => Pad::None,
        Some("0") => Pad::Zero,
        Some("nan") => Pad::Nan,
        Some("fill") => Pad::Fill,
        Some(other) => return Err(unknown("window pad", other, "none, 0, nan or fill")),
    };
    let at_end = match word("align").as_deref() {
        None | Some("start") => false,
        Some("end") => true,
        Some(other) => return Err(unknown("window align", other, "start or end")),
    };
    let step = positive(members, "window", "step")?;
    if step.is_some() && !is_rolling {
        return Err(value("window.step", "belongs to the mode `rolling`"));
    }
    if is_rolling && at_end && pad == Pad::None {
        return Err(value(
            "window.align",
            "`end` needs a `pad` in the mode `rolling`",
        ));
    }
    let min_count = positive(members, "window", "min_count")?.unwrap_or(1);
    if min_count > size {
        return Err(value("window.min_count", "is more than `window.size`"));
    }
    Ok(WindowSpec {
        axis: axis(members.get("axis").unwrap_or(&Value::Null), "window.axis")?,
        size,
        is_rolling,
        pad,
        step: step.unwrap_or(1),
        at_end,
        min_count,
    })
}

fn align(given: &Value) -> Result<AlignSpec, Error> {
    let members = object(given, "align")?;
    only(members, "align", &["with", "axes"], "with and axes")?;
    let with = dataset(members.get("with").unwrap_or(&Value::Null), "align.with")?;
    let axes = axes(members.get("axes").unwrap_or(&Value::Null), "align.axes")?;
    if axes.is_empty() {
        return Err(value("align.axes", "must name at least one axis"));
    }
    Ok(AlignSpec { with, axes })
}
