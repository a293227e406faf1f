//! The paths of the site and their contents.
//!
//! | path | content |
//! |---|---|
//! | `/` | a page with the link to the viewer and the sources |
//! | `/state.json` | the state of the viewer |
//! | `/NAME/annotations`, `skeletons`, `meshes`, `segments`, `volume` | layers |
//! | `/NAME/store` | the objects of the store |
//! | `/view` | the page that shows the stores which its address names |
//! | `/view/selection` | takes what the page shows, by PUT |
//! | `/v/zvf/`, `/events/zvf` | the viewer, if the server has one |

use std::{fmt::Write, sync::Arc};

use futures_util::future::join_all;

use super::{
    cache::ResponseCache,
    live_store::LiveStore,
    reply::{HTML, JSON, Reply},
    request::Request,
    stored_objects::StoredObjects,
    viewer_client::{self, ViewerClient},
    volume::VolumeSource,
};
use crate::{
    view::{ServedView, StoreView, viewer_link, viewer_state},
    viewer::{self, escaped},
};

/// The name of the viewer's session: it expects one in its address.
pub(super) const SESSION: &str = "zvf";
/// The path of the page that shows stores.
const PAGE: &str = "view";

/// A source of layers.
#[derive(Debug)]
pub(super) enum ServedSource {
    Store(Arc<LiveStore>),
    Volume(VolumeSource),
    /// A store for the page at `/view`, without layers.
    Objects {
        name: String,
        stored: StoredObjects,
    },
}

impl ServedSource {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Store(store) => &store.name,
            Self::Volume(volume) => &volume.name,
            Self::Objects { name, .. } => name,
        }
    }

    /// Returns the layers, if it has any.
    fn view(&self) -> Option<StoreView> {
        match self {
            Self::Store(store) => Some(store.layers().view.clone()),
            Self::Volume(volume) => Some(volume.view.clone()),
            Self::Objects { .. } => None,
        }
    }

    /// Returns the objects of a store.
    fn stored(&self) -> Option<&StoredObjects> {
        match self {
            Self::Store(store) => Some(&store.stored),
            Self::Objects { stored, .. } => Some(stored),
            Self::Volume(_) => None,
        }
    }
}

/// Everything that is served.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) sources: Vec<ServedSource>,
    pub(super) client: Option<ViewerClient>,
    pub(super) cache: ResponseCache,
    /// The address of this server, with its token.
    pub(super) address: String,
    /// The address of the viewer, if this server has none.
    pub(super) viewer: String,
}

impl Site {
    /// Returns the link that opens the viewer.
    pub(super) fn link(&self) -> String {
        let viewer = match &self.client {
            Some(_) => format!("{}/v/{SESSION}", self.address),
            None => self.viewer.clone(),
        };
        viewer_link(Some(&viewer), &format!("{}/state.json", self.address))
    }

    /// Returns the link that opens the page with all stores.
    pub(super) fn page_link(&self) -> String {
        let stores = self
            .sources
            .iter()
            .filter(|source| source.stored().is_some());
        let words: Vec<String> = stores
            .map(|source| format!("store={}/store", encoded(source.name())))
            .collect();
        format!("{}/{PAGE}?{}", self.address, words.join("&"))
    }

    /// Returns the state that shows all sources.
    pub(super) fn state(&self) -> String {
        let named: Vec<(String, String, StoreView)> = self
            .sources
            .iter()
            .filter_map(|source| {
                let name = source.name().to_owned();
                let url = format!("{}/{}", self.address, encoded(&name));
                Some((name, url, source.view()?))
            })
            .collect();
        let served: Vec<ServedView<'_>> = named
            .iter()
            .map(|(name, url, view)| ServedView { name, url, view })
            .collect();
        viewer_state(&served)
    }

    /// Returns the response to a request.
    pub(super) async fn response(&self, request: &Request) -> Reply {
        let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
        match path.as_slice() {
            [] => {
                self.refresh().await;
                return Reply::document(HTML, self.page());
            }
            ["state.json"] => {
                self.refresh().await;
                return Reply::document(JSON, self.state());
            }
            [PAGE] => return Reply::document(HTML, viewer::PAGE),
            ["v", SESSION, rest @ ..] => {
                return match (&self.client, rest) {
                    (Some(client), []) => client.file(None),
                    (Some(client), [name]) => client.file(Some(name)),
                    _ => Reply::not_found(),
                };
            }
            ["events", SESSION] if self.client.is_some() => return viewer_client::events(),
            _ => {}
        }
        let Some((name, rest)) = path.split_first() else {
            return Reply::not_found();
        };
        let source = self.sources.iter().find(|source| source.name() == *name);
        if let (Some(stored), ["store", key @ ..]) = (source.and_then(ServedSource::stored), rest) {
            return stored.reply(key, request).await;
        }
        match source {
            Some(ServedSource::Store(store)) => store.layer_file(rest, &self.cache).await,
            Some(ServedSource::Volume(volume)) => volume.response(rest, &self.cache).await,
            Some(ServedSource::Objects { .. }) | None => Reply::not_found(),
        }
    }

    /// Plans the layers of changed stores anew. If this fails, the layers of the earlier state are
    /// shown, and requests for them report the error.
    async fn refresh(&self) {
        let stores = self.sources.iter().filter_map(|source| match source {
            ServedSource::Store(store) => Some(store.refresh_if_due()),
            ServedSource::Volume(_) | ServedSource::Objects { .. } => None,
        });
        join_all(stores).await;
    }

    /// Returns a page with links.
    fn page(&self) -> String {
        let mut page = String::from(
            "<!doctype html><meta charset=\"utf-8\"><title>zvf</title>\
             <style>body{font:16px/1.5 system-ui;max-width:46em;margin:3em auto;padding:0 1em}\
             code{font-size:.9em}</style><h1>zvf serve</h1>",
        );
        // Writing into a string does not fail.
        let _ = write!(
            page,
            "<p><a href=\"{}\">Open</a> or <a href=\"{}\">open in Neuroglancer</a></p><ul>",
            escaped(&self.page_link()),
            escaped(&self.link())
        );
        for source in &self.sources {
            let name = source.name();
            let url = format!("{}/{}", self.address, encoded(name));
            let _ = write!(page, "<li>{}<ul>", escaped(name));
            let view = source.view();
            for layer in view.iter().flat_map(StoreView::layers) {
                let folder = layer.folder();
                let _ = write!(
                    page,
                    "<li>{folder}: <code>precomputed://{}/{folder}</code></li>",
                    escaped(&url)
                );
            }
            if source.stored().is_some() {
                let _ = write!(
                    page,
                    "<li>the store itself: <code>{}/store</code></li>",
                    escaped(&url)
                );
            }
            page.push_str("</ul></li>");
        }
        page.push_str("</ul>");
        page
    }
}

/// Encodes a name as a segment of a path.
fn encoded(name: &str) -> String {
    let mut segment = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            segment.push(char::from(byte));
        } else {
            _ = write!(segment, "%{byte:02X}");
        }
    }
    segment
}
