//! Rules for the public items of the façade.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

/// Items of `zvf` that a user has to know by name, re-exports included.
const MAX_ITEMS: usize = 615;
/// Structs of options whose names do not say so.
const OPTIONS: [&str; 6] = [
    "zvf::AttributeSpec",
    "zvf::AutoLevels",
    "zvf::AxisSpec",
    "zvf::Design",
    "zvf::Query",
    "zvf::VertexBudget",
];

/// Checks the list of the façade.
pub(super) fn check(list: &str) -> Result<()> {
    let items = list.lines().filter(|line| is_item(line)).count();
    ensure!(
        items <= MAX_ITEMS,
        "zvf has {items} public items, more than {MAX_ITEMS}: leave what few users need to its own \
         crate, or raise the limit of xtask/src/api/rules.rs and say why"
    );
    println!("zvf: {items} items, without fields, variants and implementations of traits");
    let missing = without_setters(list);
    ensure!(
        missing.is_empty(),
        "options without a setter: {}",
        missing.join(", ")
    );
    Ok(())
}

/// Returns whether a line is a type, trait, function, method, constant or module. Fields, variants
/// and implementations of traits belong to a type.
fn is_item(line: &str) -> bool {
    let Some((path, what)) = line.split_once(": ") else {
        return false;
    };
    !path.contains('.') && what != "variant" && !what.starts_with("impl ")
}

/// Returns the fields of structs of options that have no setter of their name and are no argument
/// of `new`. A field of several values may have one that adds a value, in the singular.
fn without_setters(list: &str) -> Vec<String> {
    let lines: Vec<(&str, &str)> = list
        .lines()
        .filter_map(|line| line.split_once(": "))
        .collect();
    let setters: BTreeSet<(&str, &str)> = lines
        .iter()
        .filter(|(_, what)| what.contains("fn(self, ") && what.ends_with("-> Self"))
        .filter_map(|(path, _)| path.rsplit_once("::"))
        .collect();
    let new = |owner: &str| {
        let path = format!("{owner}::new");
        let found = lines.iter().find(|(other, _)| *other == path);
        found.map(|(_, what)| *what)
    };
    let fields = lines
        .iter()
        .filter_map(|(path, _)| path.split_once('.'))
        .filter(|(owner, _)| owner.ends_with("Options") || OPTIONS.contains(owner));
    let missing = fields.filter(|(owner, field)| {
        let singular = field.strip_suffix('s').unwrap_or(field);
        let is_given = new(owner).is_some_and(|new| new.contains(&format!("{field}: ")));
        let has_new = new(owner).is_some();
        let is_set = [*field, singular]
            .iter()
            .any(|name| setters.contains(&(*owner, *name)));
        !has_new || !is_given && !is_set
    });
    missing
        .map(|(owner, field)| format!("{owner}.{field}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_variants_and_implementations_are_no_items() {
        let item = "z::Query: struct (Clone)";
        assert!(is_item(item) && is_item("z::Query::new: fn() -> Self"));
        for line in [
            "z::Query.limit: Option<u64>",
            "z::Clip::Drop: variant",
            "z::Query: impl Display",
        ] {
            assert!(!is_item(line), "{line}");
        }
    }

    #[test]
    fn a_field_needs_a_setter_or_an_argument_of_new() {
        let list = "zvf::Design.kind: K\nzvf::Design.name: N\nzvf::Design.rules: R\n\
                    zvf::Design::name: fn(self, name: N) -> Self\n\
                    zvf::Design::new: fn(kind: K) -> Self\n\
                    zvf::Design::rule: fn(self, rule: R) -> Self\n\
                    zvf::Report.rows: u64\n";
        assert!(without_setters(list).is_empty());
        let bare = "z::OpenOptions.a: A\nz::OpenOptions::new: fn() -> Self\n";
        assert_eq!(without_setters(bare), ["z::OpenOptions.a"]);
        let without_new = "zvf::Query.a: A\nzvf::Query::a: fn(self, a: A) -> Self\n";
        assert_eq!(without_setters(without_new), ["zvf::Query.a"]);
    }
}
