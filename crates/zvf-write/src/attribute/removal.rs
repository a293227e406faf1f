//! Removal of attributes, on every level.

use zvf_build::Profile;
use zvf_catalog::{CatalogError, Scope};
use zvf_dataset::{Dataset, Failure, base, nodes};
use zvf_model::{key::Key, layout::GroupRole, level::LevelId};
use zvf_store::{Store, Transaction};

use super::{AttributeReport, MAX_FILES, begin, finish, unchanged_levels};
use crate::stale::coarser_levels;

/// Removes attributes in one transaction. A name without a scope is that of the only attribute that has
/// it.
pub(crate) async fn remove(
    store: &Store,
    names: &[(Option<Scope>, String)],
) -> Result<AttributeReport, Failure> {
    let mut transaction = begin(store).await?;
    let staged = async {
        let dataset = base::open(store.clone()).await?;
        let mut levels = vec![LevelId::FULL];
        levels.extend(coarser_levels(dataset.store(), LevelId::FULL).await?);
        for name in names {
            let scope = scope_of(&dataset, name).await?;
            for level in &levels {
                delete(&dataset, &mut transaction, *level, scope, &name.1).await?;
            }
        }
        let root = unchanged_levels(&dataset, &mut transaction)?;
        Ok((root, AttributeReport::default()))
    };
    let staged = staged.await;
    finish(store, transaction, staged).await
}

/// Returns the scope of an attribute of level 0.
async fn scope_of(
    dataset: &Dataset,
    (asked, name): &(Option<Scope>, String),
) -> Result<Scope, Failure> {
    let mut found = Vec::new();
    let mut others = Vec::new();
    for scope in Scope::ALL {
        let catalog = dataset.catalog();
        let stored = catalog.attribute_list(LevelId::FULL, scope).await?;
        if asked.is_none_or(|asked| asked == scope) {
            if stored.contains(name) {
                found.push(scope);
            }
            others.extend(stored.iter().cloned());
        }
    }
    match found.as_slice() {
        [scope] => Ok(*scope),
        [] => Err(CatalogError::NoAttribute {
            scope: *asked,
            name: name.clone(),
            present: others,
        }
        .into()),
        _ => Err(Failure::Attribute {
            name: name.clone(),
            why: "several scopes have an attribute of this name; write it with one, such as vertex.NAME",
        }),
    }
}

/// Deletes the files of an attribute of a level.
async fn delete(
    dataset: &Dataset,
    transaction: &mut Transaction,
    level: LevelId,
    scope: Scope,
    name: &str,
) -> Result<(), Failure> {
    let keys = Profile::V09.keys(level);
    let role = scope.array(name);
    let folder: Key = match scope {
        Scope::Link => nodes::place(keys.group(GroupRole::LinkAttribute(name)))?,
        _ => nodes::place(keys.node(&role))?,
    };
    let foreign = keys
        .layout
        .foreign_attribute_at(level, &role)
        .ok()
        .flatten()
        .filter(|key| scope != Scope::Link && *key != folder);
    let store = dataset.store();
    for folder in [folder].into_iter().chain(foreign) {
        for file in store.list_to_delete(&folder, MAX_FILES).await? {
            transaction
                .delete(nodes::below(&folder, &file.name)?)
                .await?;
        }
    }
    Ok(())
}
