//! Packages that occur in two versions, and banned packages, unless `deny.toml` allows them.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::policy::{self, Entry, Package, Policy};
use crate::metadata;

pub(crate) fn findings() -> Result<Vec<String>> {
    let policy = Policy::read()?;
    let packages = policy::packages()?;
    let mut findings = duplicated(&packages, &policy.skip);
    for entry in &policy.deny {
        for package in packages.iter().filter(|p| hits(entry, p)) {
            let users = users(package.id, &packages)?;
            findings.extend(banned(package, entry, &users));
        }
    }
    Ok(findings)
}

fn hits(entry: &Entry, package: &Package<'_>) -> bool {
    entry.spec.matches(package.name, package.version)
}

fn duplicated(packages: &[Package<'_>], skip: &[Entry]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&Package<'_>>> = BTreeMap::new();
    for package in packages {
        versions.entry(package.name).or_default().push(package);
    }
    let mut findings = Vec::new();
    for (name, found) in versions.into_iter().filter(|(_, found)| found.len() > 1) {
        let all: Vec<_> = found.iter().map(|package| package.version).collect();
        let all = all.join(", ");
        let skips = skip.iter().filter(|entry| entry.spec.name == name);
        let reasons: Vec<_> = skips.map(|entry| entry.reason.as_str()).collect();
        let left = found
            .iter()
            .filter(|package| !skip.iter().any(|entry| hits(entry, package)));
        match left.count() {
            0 | 1 => println!("  {name} {all}: {}", reasons.join("; ")),
            _ => findings.push(format!(
                "{name} has several versions, {all}: name one in deny.toml's skip, with the reason"
            )),
        }
    }
    findings
}

fn banned(package: &Package<'_>, entry: &Entry, users: &[&str]) -> Vec<String> {
    let wrapped = |user: &&&str| !entry.wrappers.iter().any(|wrapper| wrapper == **user);
    let why = |user: &&str| {
        format!(
            "{user} uses {} {}: {}",
            package.name, package.version, entry.reason
        )
    };
    users.iter().filter(wrapped).map(why).collect()
}

/// Returns the names of the packages that depend on `id` directly.
fn users<'a>(id: &str, packages: &[Package<'a>]) -> Result<Vec<&'a str>> {
    let nodes = metadata::read()?["resolve"]["nodes"].as_array();
    let nodes = nodes.context("cargo metadata has no dependency graph")?;
    let using = nodes.iter().filter(|node| {
        let needs = node["dependencies"].as_array();
        needs.is_some_and(|needs| needs.iter().any(|needed| needed == id))
    });
    let ids: Vec<_> = using.filter_map(|node| node["id"].as_str()).collect();
    let users = packages.iter().filter(|package| ids.contains(&package.id));
    Ok(users.map(|package| package.name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(bans: &str) -> Policy {
        let text = format!("[licenses]\nallow = []\n[bans]\n{bans}");
        Policy::parse(&text).unwrap()
    }

    fn package(name: &'static str, version: &'static str) -> Package<'static> {
        Package {
            id: version,
            name,
            version,
            licence: None,
        }
    }

    #[test]
    fn a_second_version_needs_an_excuse() {
        let packages = [
            package("syn", "2.0.1"),
            package("syn", "3.0.0"),
            package("half", "2.7.1"),
        ];
        assert_eq!(duplicated(&packages, &[]).len(), 1);
        let skip = policy("skip = [{ crate = \"syn@2\", reason = \"derives\" }]").skip;
        assert!(duplicated(&packages, &skip).is_empty());
        let other = policy("skip = [{ crate = \"syn@1\", reason = \"gone\" }]").skip;
        assert_eq!(duplicated(&packages, &other).len(), 1);
    }

    #[test]
    fn wrappers_may_use_what_others_may_not() {
        let deny = "deny = [{ crate = \"old@1\", reason = \"slow\", wrappers = [\"a\"] }]";
        let deny = policy(deny).deny;
        let old = package("old", "1.2.0");
        assert!(banned(&old, &deny[0], &["a"]).is_empty());
        assert_eq!(
            banned(&old, &deny[0], &["a", "b"]),
            ["b uses old 1.2.0: slow"]
        );
    }
}
