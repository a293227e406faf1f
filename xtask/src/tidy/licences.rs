//! `deny.toml` allows the licence of every package in the dependency graph.

use anyhow::Result;

use super::{
    policy::{self, Package, Policy},
    spdx,
};

pub(crate) fn findings() -> Result<Vec<String>> {
    let policy = Policy::read()?;
    let packages = policy::packages()?;
    let findings = packages.iter().filter_map(|p| finding(p, &policy.allow));
    Ok(findings.collect())
}

fn finding(package: &Package<'_>, allow: &[String]) -> Option<String> {
    let name = format!("{} {}", package.name, package.version);
    let Some(expression) = package.licence else {
        return Some(format!("{name} states no licence"));
    };
    match spdx::allowed(expression, allow) {
        Ok(true) => None,
        Ok(false) => Some(format!(
            "{name}: `{expression}` is not allowed by deny.toml"
        )),
        Err(error) => Some(format!("{name}: `{expression}`: {error:#}")),
    }
}
