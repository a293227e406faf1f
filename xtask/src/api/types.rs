//! Types, bounds and signatures in rustdoc's JSON, printed as Rust.

use serde_json::Value;

/// Prints a type.
pub(super) fn shown(value: &Value) -> String {
    let Some((kind, of)) = value.as_object().and_then(|it| it.iter().next()) else {
        return value.as_str().unwrap_or("_").replace("infer", "_");
    };
    match kind.as_str() {
        "resolved_path" => path(of),
        "generic" | "primitive" => text(of),
        "tuple" => format!("({})", each(of, shown)),
        "slice" => format!("[{}]", shown(of)),
        "array" => format!("[{}; {}]", shown(&of["type"]), text(&of["len"])),
        "borrowed_ref" => {
            let lifetime = of["lifetime"]
                .as_str()
                .map_or_else(String::new, |it| format!("{it} "));
            let is_mutable = if of["is_mutable"] == true { "mut " } else { "" };
            format!("&{lifetime}{is_mutable}{}", shown(&of["type"]))
        }
        "raw_pointer" => format!("*{}", shown(&of["type"])),
        "impl_trait" => format!("impl {}", bounds(of)),
        "dyn_trait" => {
            let traits: Vec<String> = of["traits"]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default()
                .iter()
                .map(|it| path(&it["trait"]))
                .collect();
            let lifetime = of["lifetime"]
                .as_str()
                .map_or_else(String::new, |it| format!(" + {it}"));
            format!("dyn {}{lifetime}", traits.join(" + "))
        }
        "qualified_path" => {
            let name = text(&of["name"]);
            if of["trait"].is_object() {
                format!(
                    "<{} as {}>::{name}",
                    shown(&of["self_type"]),
                    path(&of["trait"])
                )
            } else {
                format!("{}::{name}", shown(&of["self_type"]))
            }
        }
        "function_pointer" => format!("fn{}", signature(&of["sig"])),
        other => other.to_owned(),
    }
}

/// Prints the parameters and the return type of a function.
pub(super) fn signature(sig: &Value) -> String {
    let inputs = each(&sig["inputs"], |input| {
        match (input[0].as_str(), shown(&input[1])) {
            (Some("self"), own) => match own.as_str() {
                "Self" => "self".to_owned(),
                "&Self" => "&self".to_owned(),
                "&mut Self" => "&mut self".to_owned(),
                other => format!("self: {other}"),
            },
            (name, shown) => format!("{}: {shown}", name.unwrap_or("_")),
        }
    });
    if sig["output"].is_null() {
        format!("({inputs})")
    } else {
        format!("({inputs}) -> {}", shown(&sig["output"]))
    }
}

/// Prints generic parameters with their bounds.
pub(super) fn generics(generics: &Value) -> String {
    let params = generics["params"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let shown_params: Vec<String> = params
        .iter()
        // Parameters of `impl Trait` arguments have no name.
        .filter(|param| param["kind"]["type"]["is_synthetic"] != true)
        .map(|param| {
            let name = text(&param["name"]);
            let bounds = bounds(&param["kind"]["type"]["bounds"]);
            match (&param["kind"]["const"], bounds.is_empty()) {
                (Value::Object(of), _) => format!("const {name}: {}", shown(&of["type"])),
                (_, true) => name,
                (_, false) => format!("{name}: {bounds}"),
            }
        })
        .collect();
    if shown_params.is_empty() {
        String::new()
    } else {
        format!("<{}>", shown_params.join(", "))
    }
}

/// Prints the last segment of a path, with its generic arguments.
pub(super) fn path(value: &Value) -> String {
    let full = value["path"].as_str().or_else(|| value["name"].as_str());
    let name = full.unwrap_or_default();
    let name = name.rsplit("::").next().unwrap_or(name);
    format!("{name}{}", arguments(&value["args"]))
}

fn arguments(args: &Value) -> String {
    if let Some(parenthesized) = args.get("parenthesized") {
        let inputs = each(&parenthesized["inputs"], shown);
        return if parenthesized["output"].is_null() {
            format!("({inputs})")
        } else {
            format!("({inputs}) -> {}", shown(&parenthesized["output"]))
        };
    }
    let angle = &args["angle_bracketed"];
    let given = each(&angle["args"], |argument| {
        let (kind, of) = argument.as_object().and_then(|it| it.iter().next()).unzip();
        match (kind.map(String::as_str), of) {
            (Some("type"), Some(of)) => shown(of),
            (Some("const"), Some(of)) => text(&of["expr"]),
            (_, Some(of)) => text(of),
            _ => "_".to_owned(),
        }
    });
    let named = each(&angle["constraints"], |constraint| {
        format!(
            "{}{}",
            text(&constraint["name"]),
            match constraint["binding"].get("equality") {
                Some(term) => format!(" = {}", shown(&term["type"])),
                None => format!(": {}", bounds(&constraint["binding"]["constraint"])),
            }
        )
    });
    let all: Vec<String> = [given, named]
        .into_iter()
        .filter(|it| !it.is_empty())
        .collect();
    if all.is_empty() {
        String::new()
    } else {
        format!("<{}>", all.join(", "))
    }
}

pub(super) fn bounds(list: &Value) -> String {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let shown = list.iter().filter_map(|bound| {
        if let Some(of) = bound.get("trait_bound") {
            let maybe = if of["modifier"] == "maybe" { "?" } else { "" };
            return Some(format!("{maybe}{}", path(&of["trait"])));
        }
        bound.get("outlives").map(text)
    });
    shown.collect::<Vec<_>>().join(" + ")
}

fn each(list: &Value, show: impl Fn(&Value) -> String) -> String {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(show).collect::<Vec<_>>().join(", ")
}

pub(super) fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
