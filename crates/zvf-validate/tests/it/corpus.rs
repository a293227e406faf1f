//! The damaged stores of `testdata/corpus`: each breaks the rules that the corpus names, and no
//! others of L1 and L2.

use std::collections::{BTreeMap, BTreeSet};

use zvf_testkit::{corpus::cases, golden::Golden};
use zvf_validate::rules;

use crate::memory::{codes, lines};

/// Levels at which a case names every broken rule.
const EXACT: [&str; 2] = ["ZV-L1-", "ZV-L2-"];
/// Rules that no damage to a store of the corpus can break: they report failed reads, failed
/// listings, exhausted memory, and differences from the inventory of a sealed store, which the engine
/// compares (`damage::sealed` of its tests).
const NOT_DAMAGE: [&str; 4] = ["ZV-L1-006", "ZV-L1-007", "ZV-L3-003", "ZV-L3-123"];

#[test]
fn each_damaged_store_breaks_the_named_rules_and_no_others() {
    let mut archives: BTreeMap<String, Golden> = BTreeMap::new();
    let mut intact: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for case in cases() {
        let golden = archives
            .entry(case.archive.clone())
            .or_insert_with(|| Golden::open(&case.archive));
        let mut files = golden.store(&case.store);
        let base = format!("{}/{}", case.archive, case.store);
        // Findings in the store as recorded have other causes than the damage.
        let before = intact.entry(base).or_insert_with(|| codes(&lines(&files)));
        case.damage(&mut files);
        let lines = lines(&files);
        let after = codes(&lines);
        let is_exact = |code: &&String| EXACT.iter().any(|level| code.starts_with(level));
        let missed: Vec<&String> = case.must.difference(&after).collect();
        let new = after
            .difference(before)
            .filter(|code| !case.must.contains(*code));
        let extra: Vec<&String> = new
            .filter(|code| is_exact(code) || case.must_not.contains(*code))
            .collect();
        if !missed.is_empty() || !extra.is_empty() {
            let name = &case.name;
            wrong.push(format!(
                "{name}: missed {missed:?}, extra {extra:?}: {lines:#?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn cases_name_only_existing_rules() {
    for case in cases() {
        for code in case.must.union(&case.must_not) {
            assert!(
                rules::find(code).is_some(),
                "{}: {code} is not a rule",
                case.name
            );
        }
    }
}

#[test]
fn every_rule_has_a_case() {
    let cases = cases();
    let must: BTreeSet<&str> = cases
        .iter()
        .flat_map(|case| case.must.iter().map(String::as_str))
        .collect();
    let untested: Vec<String> = rules::all()
        .filter(|rule| !must.contains(rule.code) && !NOT_DAMAGE.contains(&rule.code))
        .map(|rule| format!("{} {}", rule.code, rule.title))
        .collect();
    assert!(untested.is_empty(), "no damaged store breaks {untested:#?}");
}
