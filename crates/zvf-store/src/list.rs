//! The children of a place in a store.

use core::error::Error;

use futures_util::TryStreamExt;
use object_store::path::Path;
use zvf_model::key::Key;

use crate::{
    failure::{self, Kind, gave_up_early, says},
    store::{Backend, Store},
};

/// The children of a place, one level deep, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Names that have children of their own.
    pub folders: Vec<String>,
    /// Objects.
    pub files: Vec<ListedFile>,
}

/// An object in a [`Listing`], or of [`Store::list_all`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedFile {
    /// Its key from the listed place on: one segment in a [`Listing`].
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
}

/// Why children cannot be listed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// There are more children than allowed.
    #[error("{prefix}: more than {limit} children")]
    TooMany {
        /// Where.
        prefix: Key,
        /// The limit given.
        limit: usize,
    },
    /// The store wants to know who asks.
    #[error("{prefix}: not authenticated")]
    Unauthenticated {
        /// Where.
        prefix: Key,
        /// What the store said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Who asks may not list this.
    #[error("{prefix}: listing is not permitted")]
    Forbidden {
        /// Where.
        prefix: Key,
        /// What the store said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store asked to slow down and still did after the last retry.
    #[error("{prefix}: the store asks to slow down")]
    Throttled {
        /// Where.
        prefix: Key,
        /// What the store said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store cannot be reached or does not work, after the last retry.
    #[error("{prefix}: the store is not available")]
    Unavailable {
        /// Where.
        prefix: Key,
        /// What happened.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Anything else, and stores that cannot list: web servers usually cannot.
    #[error("{prefix}: children cannot be listed")]
    Io {
        /// Where.
        prefix: Key,
        /// What happened.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl ListError {
    /// Where the children were to be.
    pub fn prefix(&self) -> &Key {
        match self {
            Self::TooMany { prefix, .. }
            | Self::Unauthenticated { prefix, .. }
            | Self::Forbidden { prefix, .. }
            | Self::Throttled { prefix, .. }
            | Self::Unavailable { prefix, .. }
            | Self::Io { prefix, .. } => prefix,
        }
    }

    /// Whether asking again later may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Throttled { .. } | Self::Unavailable { .. })
    }
}

impl Store {
    /// Every object below `prefix`, at any depth, sorted by name.
    ///
    /// A bucket answers a thousand in a request.
    ///
    /// # Errors
    ///
    /// [`ListError`]; also as soon as there are more objects than `limit`.
    pub async fn list_all(&self, prefix: &Key, limit: usize) -> Result<Vec<ListedFile>, ListError> {
        self.recorder().list();
        let too_many = || ListError::TooMany {
            prefix: prefix.clone(),
            limit,
        };
        let mut files = match self.backend() {
            Backend::Objects(objects) => {
                let path = &self.path(prefix)?;
                let list = || async move {
                    let mut found = objects.list(Some(path));
                    let mut files = Vec::new();
                    while let Some(object) = found.try_next().await? {
                        let Some(below) = object.location.prefix_match(path) else {
                            continue;
                        };
                        let name: Path = below.collect();
                        let (name, size) = (name.into(), object.size);
                        files.push(ListedFile { name, size });
                        // One too many is enough to know.
                        if files.len() > limit {
                            break;
                        }
                    }
                    Ok(files)
                };
                let files = self.tries().until_whole(list, is_broken).await;
                files.map_err(|source| sort(prefix, source))?
            }
            #[cfg(feature = "zip")]
            Backend::Zip(archive) => archive.list_all(prefix.as_str()),
        };
        if files.len() > limit {
            return Err(too_many());
        }
        files.sort_unstable();
        Ok(files)
    }

    /// The children of `prefix`, one level deep; of the store itself for
    /// the root. No child is an empty listing, as is an absent prefix.
    ///
    /// A bucket answers a thousand children in a request. All are held before
    /// `limit` is looked at.
    ///
    /// # Errors
    ///
    /// [`ListError`]; also for more children than `limit`.
    pub async fn list(&self, prefix: &Key, limit: usize) -> Result<Listing, ListError> {
        self.recorder().list();
        let mut listing = match self.backend() {
            Backend::Objects(objects) => {
                let path = self.path(prefix)?;
                let list = || objects.list_with_delimiter(Some(&path));
                let found = self.tries().until_whole(list, is_broken).await;
                let found = found.map_err(|source| sort(prefix, source))?;
                let name = |path: &Path| path.filename().map(str::to_owned);
                let file = |object: object_store::ObjectMeta| {
                    let name = name(&object.location)?;
                    let size = object.size;
                    Some(ListedFile { name, size })
                };
                Listing {
                    folders: found.common_prefixes.iter().filter_map(name).collect(),
                    files: found.objects.into_iter().filter_map(file).collect(),
                }
            }
            #[cfg(feature = "zip")]
            Backend::Zip(archive) => archive.list(prefix.as_str()),
        };
        if listing.folders.len().saturating_add(listing.files.len()) > limit {
            let prefix = prefix.clone();
            return Err(ListError::TooMany { prefix, limit });
        }
        listing.folders.sort_unstable();
        listing.files.sort_unstable();
        Ok(listing)
    }

    fn path(&self, prefix: &Key) -> Result<Path, ListError> {
        let path = Path::parse(prefix).map_err(|source| sort(prefix, source.into()))?;
        Ok(self.root().parts().chain(path.parts()).collect())
    }
}

fn sort(prefix: &Key, failure: object_store::Error) -> ListError {
    let prefix = prefix.clone();
    let (kind, source) = failure::sort(failure);
    match kind {
        Kind::Unauthenticated => ListError::Unauthenticated { prefix, source },
        Kind::Forbidden => ListError::Forbidden { prefix, source },
        Kind::Throttled => ListError::Throttled { prefix, source },
        Kind::Unavailable => ListError::Unavailable { prefix, source },
        Kind::Other => ListError::Io { prefix, source },
    }
}

/// A list that broke off: `object_store` does not ask for it again.
fn is_broken(failure: &object_store::Error) -> bool {
    gave_up_early(failure) || says(failure, "invalid list response")
}
