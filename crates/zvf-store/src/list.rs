//! The children of a place in a store.

use core::error::Error;

use futures_util::TryStreamExt;
use object_store::path::Path;
use zvf_model::key::Key;

use crate::{
    failure::{self, Kind, gave_up_early, refuses_listing, says},
    overlay::{Overlay, is_own},
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

impl Listing {
    /// Whether there is nothing.
    fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.files.is_empty()
    }

    /// The size of the object of this name.
    pub(crate) fn size_of(&self, name: &str) -> Option<u64> {
        let found = self
            .files
            .binary_search_by(|file| file.name.as_str().cmp(name));
        Some(self.files.get(found.ok()?)?.size)
    }
}

/// An object in a [`Listing`], or of [`Store::list_all`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedFile {
    /// Its key from the listed place on: one segment in a [`Listing`].
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
}

/// An object of transactions.
#[derive(Clone, Debug)]
pub(crate) struct OwnFile {
    pub(crate) name: String,
    pub(crate) size: u64,
    /// Milliseconds since 1970.
    pub(crate) modified: i64,
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
    /// The store cannot list, as most web servers, or does not let whoever asks.
    #[error("{prefix}: the store cannot list children")]
    Unlistable {
        /// Where.
        prefix: Key,
        /// What the store said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Nobody knows who asks.
    #[error("{prefix}: not authenticated")]
    Unauthenticated {
        /// Where.
        prefix: Key,
        /// What happened.
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
    /// Anything else.
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
            | Self::Unlistable { prefix, .. }
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
        self.wait(0).await;
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
                        let name = String::from(name);
                        if !self.shows(prefix, &name) {
                            continue;
                        }
                        let size = object.size;
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
            Backend::Zip(archive) => {
                let mut files = archive.list_all(prefix.as_str());
                files.retain(|file| self.shows(prefix, &file.name));
                files
            }
        };
        if let Some(overlay) = self.overlay() {
            overlay.list_all(prefix, &mut files);
        }
        if files.len() > limit {
            return Err(too_many());
        }
        if files.is_empty() {
            self.must_list(prefix).await?;
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
        self.wait(0).await;
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
        listing.folders.retain(|name| self.shows(prefix, name));
        listing.files.retain(|file| self.shows(prefix, &file.name));
        if let Some(overlay) = self.overlay() {
            self.retain_filled(overlay, prefix, &mut listing).await?;
            overlay.list(prefix, &mut listing);
        }
        if listing.folders.len().saturating_add(listing.files.len()) > limit {
            let prefix = prefix.clone();
            return Err(ListError::TooMany { prefix, limit });
        }
        if listing.is_empty() {
            self.must_list(prefix).await?;
        }
        listing.folders.sort_unstable();
        listing.files.sort_unstable();
        Ok(listing)
    }

    /// Leaves out folders of which all that is in them is deleted, and still there.
    async fn retain_filled(
        &self,
        overlay: &Overlay,
        prefix: &Key,
        listing: &mut Listing,
    ) -> Result<(), ListError> {
        let folders = core::mem::take(&mut listing.folders);
        for name in folders {
            if overlay.may_empty(prefix, &name)
                && let Ok(folder) = prefix.join(&name)
            {
                // One object is enough to know.
                match self.list_all(&folder, 0).await {
                    Ok(_) => continue,
                    Err(ListError::TooMany { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            listing.folders.push(name);
        }
        Ok(())
    }

    /// Whether what is at `name` below `prefix` belongs to the store, and not to
    /// the transactions that change it or to what one of them deleted.
    fn shows(&self, prefix: &Key, name: &str) -> bool {
        let own = prefix.is_root() && is_own(name);
        let gone = |overlay: &Overlay| overlay.deletes(prefix, name);
        !own && !self.overlay().is_some_and(gone)
    }

    /// Everything below a place of transactions.
    pub(crate) async fn list_own(&self, prefix: &Key) -> Result<Vec<OwnFile>, ListError> {
        let Some(objects) = self.objects() else {
            return Ok(Vec::new());
        };
        self.recorder().list();
        let path = &self.path(prefix)?;
        let list = || async move {
            let mut found = objects.list(Some(path));
            let mut files = Vec::new();
            while let Some(object) = found.try_next().await? {
                let Some(below) = object.location.prefix_match(path) else {
                    continue;
                };
                files.push(OwnFile {
                    name: below.collect::<Path>().into(),
                    size: object.size,
                    modified: object.last_modified.timestamp_millis(),
                });
            }
            Ok(files)
        };
        let files = self.tries().until_whole(list, is_broken).await;
        files.map_err(|source| sort(prefix, source))
    }

    /// Tells an empty place from a web server that knows no listing and says of
    /// every place that it is not there. Such a server has nothing at the top
    /// either; asked once.
    async fn must_list(&self, prefix: &Key) -> Result<(), ListError> {
        let Some(objects) = self.objects().filter(|_| self.is_web()) else {
            return Ok(());
        };
        let lists = match self.lacks().listing.get() {
            Some(lists) => *lists,
            None if prefix.is_root() => false,
            None => {
                self.recorder().list();
                let top = objects.list_with_delimiter(Some(self.root())).await;
                let top = top.map_err(|source| sort(prefix, source))?;
                !(top.common_prefixes.is_empty() && top.objects.is_empty())
            }
        };
        if *self.lacks().listing.get_or_init(|| lists) {
            return Ok(());
        }
        Err(ListError::Unlistable {
            prefix: prefix.clone(),
            source: "nothing is listed anywhere in the store".into(),
        })
    }

    fn path(&self, prefix: &Key) -> Result<Path, ListError> {
        let path = Path::parse(prefix).map_err(|source| sort(prefix, source.into()))?;
        Ok(self.root().parts().chain(path.parts()).collect())
    }
}

/// The kind of a failure.
fn sort(prefix: &Key, failure: object_store::Error) -> ListError {
    let prefix = prefix.clone();
    let refused = refuses_listing(&failure);
    let (kind, source) = failure::sort(failure);
    match kind {
        _ if refused => ListError::Unlistable { prefix, source },
        Kind::Unauthenticated => ListError::Unauthenticated { prefix, source },
        Kind::Throttled => ListError::Throttled { prefix, source },
        Kind::Unavailable => ListError::Unavailable { prefix, source },
        Kind::Forbidden | Kind::Other => ListError::Io { prefix, source },
    }
}

/// A list that broke off: `object_store` does not ask for it again.
fn is_broken(failure: &object_store::Error) -> bool {
    gave_up_early(failure) || says(failure, "invalid list response")
}
