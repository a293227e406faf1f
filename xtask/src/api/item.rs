//! The public items of a crate, under the paths that users name.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::Value;

use super::types::{bounds, generics, path, shown, signature, text};

/// Traits that derive macros implement for the compiler and that users never name.
const NOISE: [&str; 2] = ["StructuralPartialEq", "TrivialClone"];

/// Traits that most types implement, listed beside the type instead of on separate lines.
const DERIVED: [&str; 9] = [
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Eq",
    "Hash",
    "Ord",
    "PartialEq",
    "PartialOrd",
];

/// Lists the items, one per line, in order. An item that is re-exported from one of `others`, the
/// documentation of other crates by crate name, is listed with its members.
pub(super) fn lines(json: &Value, others: &BTreeMap<String, Value>) -> Result<String> {
    let root = text(&json["root"]);
    let mut walk = Walk {
        index: &json["index"],
        paths: &json["paths"],
        others,
        lines: BTreeSet::new(),
    };
    let name = json["index"][&root]["name"]
        .as_str()
        .context("the crate has no name")?;
    walk.module(&root, name)?;
    let lines: Vec<String> = walk.lines.into_iter().collect();
    Ok(lines.join("\n") + "\n")
}

struct Walk<'a> {
    index: &'a Value,
    /// Crate, path and kind of each item, including items of other crates.
    paths: &'a Value,
    others: &'a BTreeMap<String, Value>,
    lines: BTreeSet<String>,
}

impl<'a> Walk<'a> {
    fn get(&self, id: &str) -> Option<&'a Value> {
        self.index.get(id)
    }

    fn module(&mut self, id: &str, at: &str) -> Result<()> {
        let module = self.get(id).context("a module is missing from the index")?;
        for item in ids(&module["inner"]["module"]["items"]) {
            if let Some(item) = self.get(&item) {
                self.item(item, at)?;
            }
        }
        Ok(())
    }

    fn item(&mut self, item: &'a Value, at: &str) -> Result<()> {
        if item["visibility"] != "public" {
            return Ok(());
        }
        let inner = item["inner"].as_object().and_then(|it| it.iter().next());
        let (kind, of) = inner.context("an item has no contents")?;
        let name = item["name"].as_str().unwrap_or_default();
        let here = format!("{at}::{name}");
        let generic = generics(&of["generics"]);
        match kind.as_str() {
            "module" => {
                self.lines.insert(format!("{here}: module"));
                self.module(&text(&item["id"]), &here)?;
            }
            "use" => self.used(of, at)?,
            "struct" => {
                let kind = &of["kind"];
                let tuple = kind["tuple"]
                    .as_array()
                    .map(|list| ids(&Value::from(list.clone())));
                for field in ids(&kind["plain"]["fields"])
                    .into_iter()
                    .chain(tuple.unwrap_or_default())
                {
                    self.field(&field, &here, true);
                }
                let derived = self.impls(of, &here);
                self.lines
                    .insert(format!("{here}: struct{generic}{derived}"));
            }
            "enum" => {
                for id in ids(&of["variants"]) {
                    self.variant(&id, &here);
                }
                let derived = self.impls(of, &here);
                self.lines.insert(format!("{here}: enum{generic}{derived}"));
            }
            "trait" => {
                let above = bounds(&of["bounds"]);
                let above = if above.is_empty() {
                    above
                } else {
                    format!(": {above}")
                };
                self.lines.insert(format!("{here}: trait{generic}{above}"));
                self.members(&of["items"], &here);
            }
            "function" => self.function(of, &here),
            "type_alias" => {
                self.lines
                    .insert(format!("{here}: type{generic} = {}", shown(&of["type"])));
            }
            "constant" => {
                self.lines
                    .insert(format!("{here}: const {}", shown(&of["type"])));
            }
            other => {
                self.lines.insert(format!("{here}: {other}"));
            }
        }
        Ok(())
    }

    /// Lists a re-export. An item of this crate is listed at the path that users name.
    fn used(&mut self, of: &'a Value, at: &str) -> Result<()> {
        let target = self.get(&text(&of["id"]));
        match (target, of["is_glob"] == true) {
            (Some(_), true) => self.module(&text(&of["id"]), at),
            (Some(item), false) if item["name"] == of["name"] => self.item(item, at),
            _ => {
                let name = text(&of["name"]);
                if let Some((json, item)) = self.foreign(of)
                    && item["name"] == of["name"]
                {
                    let mut walk = Walk {
                        index: &json["index"],
                        paths: &json["paths"],
                        others: self.others,
                        lines: BTreeSet::new(),
                    };
                    walk.item(item, at)?;
                    self.lines.append(&mut walk.lines);
                } else {
                    self.lines
                        .insert(format!("{at}::{name}: {}", text(&of["source"])));
                }
                Ok(())
            }
        }
    }

    /// Finds the re-exported item of another crate in the documentation of that crate.
    fn foreign(&self, of: &Value) -> Option<(&'a Value, &'a Value)> {
        let path = self.paths.get(text(&of["id"]))?["path"].as_array()?;
        let json = self.others.get(path.first()?.as_str()?)?;
        let (id, _) = json["paths"]
            .as_object()?
            .iter()
            .find(|(_, entry)| entry["crate_id"] == 0 && entry["path"].as_array() == Some(path))?;
        Some((json, json["index"].get(id)?))
    }

    fn function(&mut self, of: &Value, here: &str) {
        let header = &of["header"];
        let word = |is: &str, word: &'static str| if header[is] == true { word } else { "" };
        let generic = generics(&of["generics"]);
        let (is_const, is_async) = (word("is_const", "const "), word("is_async", "async "));
        let sig = signature(&of["sig"]);
        self.lines
            .insert(format!("{here}: {is_const}{is_async}fn{generic}{sig}"));
    }

    fn field(&mut self, id: &str, here: &str, only_public: bool) {
        let Some(field) = self.get(id) else { return };
        if only_public && field["visibility"] != "public" {
            return;
        }
        let name = text(&field["name"]);
        let of = shown(&field["inner"]["struct_field"]);
        self.lines.insert(format!("{here}.{name}: {of}"));
    }

    fn variant(&mut self, id: &str, here: &str) {
        let Some(variant) = self.get(id) else { return };
        let here = format!("{here}::{}", text(&variant["name"]));
        self.lines.insert(format!("{here}: variant"));
        let kind = &variant["inner"]["variant"]["kind"];
        for field in ids(&kind["struct"]["fields"])
            .into_iter()
            .chain(ids(&kind["tuple"]))
        {
            self.field(&field, &here, false);
        }
    }

    /// Lists the members of each impl and returns the traits that belong on the type's own line.
    fn impls(&mut self, of: &Value, here: &str) -> String {
        let mut derived = BTreeSet::new();
        for id in ids(&of["impls"]) {
            let Some(inner) = self.get(&id).map(|it| &it["inner"]["impl"]) else {
                continue;
            };
            if inner["is_synthetic"] == true || !inner["blanket_impl"].is_null() {
                continue;
            }
            if inner["trait"].is_null() {
                self.members(&inner["items"], here);
            } else if !NOISE.contains(&inner["trait"]["path"].as_str().unwrap_or_default()) {
                let name = path(&inner["trait"]);
                if DERIVED.contains(&name.as_str()) {
                    derived.insert(name);
                } else {
                    self.lines.insert(format!("{here}: impl {name}"));
                }
            }
        }
        if derived.is_empty() {
            return String::new();
        }
        let derived: Vec<String> = derived.into_iter().collect();
        format!(" ({})", derived.join(", "))
    }

    /// Lists the members of an inherent impl or a trait.
    fn members(&mut self, items: &Value, here: &str) {
        for id in ids(items) {
            let Some(item) = self.get(&id) else { continue };
            if !["public", "default"].contains(&item["visibility"].as_str().unwrap_or_default()) {
                continue;
            }
            let here = format!("{here}::{}", text(&item["name"]));
            if let Some(of) = item["inner"].get("function") {
                self.function(of, &here);
            } else if let Some(of) = item["inner"].get("assoc_const") {
                self.lines
                    .insert(format!("{here}: const {}", shown(&of["type"])));
            } else if let Some(of) = item["inner"].get("assoc_type") {
                self.lines
                    .insert(format!("{here}: type {}", bounds(&of["bounds"])));
            }
        }
    }
}

fn ids(list: &Value) -> Vec<String> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter(|id| !id.is_null()).map(text).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::lines;

    #[test]
    fn re_exports_of_other_crates_are_listed_with_their_members() {
        let item = |name: &str, inner| json!({ "id": 3, "name": name, "visibility": "public", "inner": inner });
        let path = json!(["lower", "s", "S"]);
        let lower = json!({ "root": 0, "paths": { "3": { "crate_id": 0, "path": path, "kind": "struct" } },
            "index": {
                "3": item("S", json!({ "struct": { "kind": { "plain": { "fields": [4] } },
                    "generics": { "params": [] }, "impls": [] } })),
                "4": item("f", json!({ "struct_field": { "primitive": "u8" } })),
            } });
        let used = |name: &str| json!({ "use": { "id": 7, "name": name, "source": "lower::S", "is_glob": false } });
        let upper = json!({ "root": 0, "paths": { "7": { "crate_id": 1, "path": path, "kind": "struct" } },
            "index": {
                "0": item("upper", json!({ "module": { "items": [1, 2] } })),
                "1": item("", used("S")), "2": item("", used("Renamed")),
            } });
        let others = BTreeMap::from([("lower".to_owned(), lower)]);
        let want = "upper::Renamed: lower::S\nupper::S.f: u8\nupper::S: struct\n";
        assert_eq!(lines(&upper, &others).unwrap(), want);
    }

    #[test]
    fn items_are_listed_where_users_find_them() {
        let public = |name: &str, inner| json!({ "id": 9, "name": name, "visibility": "public", "inner": inner });
        let imp = |name: &str| {
            json!({ "visibility": "default", "inner": { "impl": { "trait": { "path": name, "args": null },
            "is_synthetic": false, "blanket_impl": null, "items": [] } } })
        };
        let sig = json!({ "inputs": [["self", { "borrowed_ref": { "lifetime": null, "is_mutable": false,
            "type": { "generic": "Self" } } }]], "output": { "primitive": "u64" } });
        let json = json!({ "root": 0, "index": {
            "0": public("c", json!({ "module": { "items": [1, 2] } })),
            "1": { "name": "hidden", "visibility": "crate", "inner": { "module": { "items": [3] } } },
            "2": public("", json!({ "use": { "id": 3, "name": "S", "source": "hidden::S", "is_glob": false } })),
            "3": public("S", json!({ "struct": { "kind": { "plain": { "fields": [4] } },
                "generics": { "params": [] }, "impls": [5, 7, 8, 10] } })),
            "4": public("f", json!({ "struct_field": { "slice": { "primitive": "u8" } } })),
            "5": { "visibility": "default", "inner": { "impl": { "trait": null, "is_synthetic": false,
                "blanket_impl": null, "items": [6] } } },
            "7": imp("Eq"), "8": imp("Clone"), "10": imp("Error"),
            "6": public("len", json!({ "function": { "sig": sig, "header": {}, "generics": { "params": [] } } })),
        } });
        let found = lines(&json, &BTreeMap::new()).unwrap();
        assert_eq!(
            found,
            "c::S.f: [u8]\nc::S: impl Error\nc::S: struct (Clone, Eq)\nc::S::len: fn(&self) -> u64\n"
        );
    }
}
