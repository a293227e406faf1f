//! Clients of buckets and web servers.

use core::time::Duration;
use std::{collections::BTreeMap, sync::Arc};

use object_store::{BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig, path::Path};
use url::Url;

use super::{address::Scheme, error::OpenError};

/// Options of network stores.
#[derive(Clone, Debug)]
pub(crate) struct NetworkOptions {
    pub(crate) anonymous: bool,
    pub(crate) retries: usize,
    pub(crate) retry_timeout: Duration,
    pub(crate) timeout: Option<Duration>,
    /// Options by the names `object_store` gives them.
    pub(crate) named: BTreeMap<String, String>,
}

/// Builds one kind of client. Options override the address, which overrides the environment.
macro_rules! build {
    ($builder:expr, $client:expr, $options:expr, $url:expr) => {{
        let (options, url): (&NetworkOptions, &Url) = ($options, $url);
        let mut builder = $builder.with_retry(retry_config(options));
        if let Some(timeout) = options.timeout {
            let text = format!("{}ms", timeout.as_millis());
            builder = builder.with_config($client(ClientConfigKey::Timeout), text);
        }
        for (name, value) in &options.named {
            let key = name
                .to_ascii_lowercase()
                .parse()
                .map_err(|_| OpenError::Option(name.clone()))?;
            builder = builder.with_config(key, value);
        }
        let store = builder.build().map_err(|source| OpenError::Configuration {
            address: url.to_string(),
            source: Box::new(source),
        })?;
        let store: Arc<dyn ObjectStore> = Arc::new(store);
        Ok(store)
    }};
}

type BuildResult = Result<Arc<dyn ObjectStore>, OpenError>;

/// Returns the client of the store that `url` names, and the path of the store within it.
pub(crate) fn connect(
    options: &NetworkOptions,
    scheme: Scheme,
    url: &Url,
) -> Result<(Arc<dyn ObjectStore>, Path), OpenError> {
    let objects = options.build(scheme, url)?;
    let parsed = object_store::ObjectStoreScheme::parse(url);
    let (_, root) = parsed.map_err(|source| OpenError::Configuration {
        address: url.to_string(),
        source: Box::new(source),
    })?;
    Ok((objects, root))
}

impl NetworkOptions {
    fn build(&self, scheme: Scheme, url: &Url) -> BuildResult {
        match scheme {
            #[cfg(feature = "http")]
            Scheme::Http => self.build_http(url),
            #[cfg(feature = "aws")]
            Scheme::S3 => self.build_s3(url),
            #[cfg(feature = "gcp")]
            Scheme::Gcs => self.build_gcs(url),
            #[cfg(feature = "azure")]
            Scheme::Azure => self.build_azure(url),
            #[cfg(not(all(
                feature = "aws",
                feature = "azure",
                feature = "gcp",
                feature = "http"
            )))]
            _ => Err(OpenError::Feature {
                address: url.to_string(),
                feature: scheme.feature(),
            }),
        }
    }

    #[cfg(feature = "http")]
    fn build_http(&self, url: &Url) -> BuildResult {
        let server = &url[..url::Position::BeforePath];
        // An `http:` address is explicit, so plain HTTP is allowed.
        let plain = (url.scheme() == "http").to_string();
        let builder = object_store::http::HttpBuilder::new()
            .with_url(server)
            .with_config(ClientConfigKey::AllowHttp, plain);
        build!(builder, core::convert::identity, self, url)
    }

    #[cfg(feature = "aws")]
    fn build_s3(&self, url: &Url) -> BuildResult {
        use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key};
        let mut builder = AmazonS3Builder::from_env().with_url(url.as_str());
        if self.anonymous {
            builder = builder.with_skip_signature(true);
        }
        build!(builder, Key::Client, self, url)
    }

    #[cfg(feature = "gcp")]
    fn build_gcs(&self, url: &Url) -> BuildResult {
        use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey as Key};
        let mut builder = GoogleCloudStorageBuilder::from_env().with_url(url.as_str());
        if self.anonymous {
            builder = builder.with_skip_signature(true);
        }
        build!(builder, Key::Client, self, url)
    }

    #[cfg(feature = "azure")]
    fn build_azure(&self, url: &Url) -> BuildResult {
        use object_store::azure::{AzureConfigKey as Key, MicrosoftAzureBuilder};
        let mut builder = MicrosoftAzureBuilder::from_env().with_url(url.as_str());
        if self.anonymous {
            builder = builder.with_skip_signature(true);
        }
        build!(builder, Key::Client, self, url)
    }
}

fn retry_config(options: &NetworkOptions) -> RetryConfig {
    RetryConfig {
        max_retries: options.retries,
        retry_timeout: options.retry_timeout,
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(50),
            max_backoff: Duration::from_secs(5),
            base: 2.0,
        },
    }
}
