//! The paths of the site and their contents.
//!
//! | path | content |
//! |---|---|
//! | `/` | a page with the link to the viewer and the sources |
//! | `/state.json` | the state of the viewer |
//! | `/NAME/annotations`, `skeletons`, `meshes`, `segments`, `volume` | layers |
//! | `/NAME/store` | the objects of the store |
//! | `/v/zvf/`, `/events/zvf` | the viewer, if the server has one |

use std::{fmt::Write, sync::Arc};

use futures_util::future::join_all;

use super::{
    cache::ResponseCache,
    live_store::LiveStore,
    reply::{HTML, JSON, Reply},
    request::Request,
    viewer_client::{self, ViewerClient},
    volume::VolumeSource,
};
use crate::view::{ServedView, StoreView, viewer_link, viewer_state};

/// The name of the viewer's session: it expects one in its address.
pub(super) const SESSION: &str = "zvf";

/// A source of layers.
#[derive(Debug)]
pub(super) enum ServedSource {
    Store(Arc<LiveStore>),
    Volume(VolumeSource),
}

impl ServedSource {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Store(store) => &store.name,
            Self::Volume(volume) => &volume.name,
        }
    }

    fn view(&self) -> StoreView {
        match self {
            Self::Store(store) => store.layers().view.clone(),
            Self::Volume(volume) => volume.view.clone(),
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

    /// Returns the state that shows all sources.
    pub(super) fn state(&self) -> String {
        let named: Vec<(String, String, StoreView)> = self
            .sources
            .iter()
            .map(|source| {
                let name = source.name().to_owned();
                let url = format!("{}/{}", self.address, encoded(&name));
                (name, url, source.view())
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
        match (source, rest) {
            (Some(ServedSource::Store(store)), ["store", key @ ..]) => {
                store.object(key, request).await
            }
            (Some(ServedSource::Store(store)), path) => store.layer_file(path, &self.cache).await,
            (Some(ServedSource::Volume(volume)), path) => volume.response(path, &self.cache).await,
            (None, _) => Reply::not_found(),
        }
    }

    /// Plans the layers of changed stores anew. If this fails, the layers of the earlier state are
    /// shown, and requests for them report the error.
    async fn refresh(&self) {
        let stores = self.sources.iter().filter_map(|source| match source {
            ServedSource::Store(store) => Some(store.refresh_if_due()),
            ServedSource::Volume(_) => None,
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
            "<p><a href=\"{}\">Open in Neuroglancer</a></p><ul>",
            escaped(&self.link())
        );
        for source in &self.sources {
            let name = source.name();
            let url = format!("{}/{}", self.address, encoded(name));
            let _ = write!(page, "<li>{}<ul>", escaped(name));
            for layer in source.view().layers() {
                let folder = layer.folder();
                let _ = write!(
                    page,
                    "<li>{folder}: <code>precomputed://{}/{folder}</code></li>",
                    escaped(&url)
                );
            }
            if matches!(source, ServedSource::Store(_)) {
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

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_cannot_be_markup() {
        let name = super::escaped("<img src=\"x\">&");
        assert_eq!(name, "&lt;img src=&quot;x&quot;&gt;&amp;");
    }
}
