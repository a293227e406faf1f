//! A proxy between client and server injects faults: occasional ones must not change results,
//! permanent ones must be reported.

use core::time::Duration;

use zvf::{Dataset, OpenOptions};
use zvf_model::key::Key;
use zvf_store::{CellError, ListError, ListedFile, ReadError, Store};
use zvf_testkit::proxy::{FaultPlan, Proxy, ProxyFault};

use super::{Contents, Place, Responses, block_on, contents, on_disk, report, responses};

const STORE: &str = "sharded";
/// Longer than any response takes, shorter than the server timeout.
const LATE: Duration = Duration::from_millis(3500);

/// Short timeouts if the fault delays responses, long ones otherwise: a busy machine must not look
/// like a fault.
fn options(fault: ProxyFault) -> OpenOptions {
    let patience = match fault {
        ProxyFault::Stall => Duration::from_secs(2),
        ProxyFault::Late(late) if late == LATE => Duration::from_secs(2),
        _ => Duration::from_mins(1),
    };
    OpenOptions::default()
        .retries(4)
        .retry_timeout(Duration::from_mins(1))
        .timeout(patience)
}

fn files() -> Vec<ListedFile> {
    let disk = Store::open(&on_disk(STORE)).unwrap();
    block_on(disk.list_all(&Key::root(), usize::MAX)).unwrap()
}

/// Everything that is compared.
async fn everything(
    place: Place,
    store: Store,
    files: &[ListedFile],
) -> Result<(Responses, Contents), Box<dyn core::error::Error>> {
    let contents = contents(&store, files).await?;
    let dataset = Dataset::open(store).await?;
    Ok((responses(&dataset, place.lists()).await?, contents))
}

/// Occasional faults: the data are equal, and faults occurred.
fn transient_faults(place: Place, plans: &[FaultPlan]) -> usize {
    let files = files();
    let disk = || Store::open(&on_disk(STORE)).unwrap();
    let (want, there) = block_on(everything(place, disk(), &files)).unwrap();
    let mut faults = 0;
    for plan in plans {
        let proxy = Proxy::start(place.server(), plan.clone());
        let store = place.through(&proxy, STORE, &options(plan.fault));
        let found = block_on(everything(place, store, &files));
        let (responses, contents) =
            found.unwrap_or_else(|error| panic!("{place:?} {plan:?}: {error:?}"));
        assert_eq!(responses, want, "{place:?} {plan:?}");
        assert!(contents == there, "{place:?} {plan:?}");
        assert!(proxy.faults() > 0, "{place:?} {plan:?}: no fault");
        faults += proxy.faults();
    }
    faults
}

/// Returns the store error below an error.
fn of_store<'a>(top: &'a (dyn core::error::Error + 'static)) -> &'a ReadError {
    let mut below = Some(top);
    while let Some(error) = below {
        if let Some(error) = error.downcast_ref() {
            return error;
        }
        if let Some(CellError::Read(error)) = error.downcast_ref() {
            return error;
        }
        below = error.source();
    }
    panic!("{top:?}")
}

type ErrorTest = fn(&ReadError) -> bool;

/// Permanent faults of one object: the error names the object and the fault, and everything else is
/// readable.
fn permanent_faults(place: Place, cases: &[(ProxyFault, ErrorTest)]) {
    const KEY: &str = "0/vertices/c/0/0/0";
    let files = files();
    for (fault, is_expected) in cases {
        let plan = FaultPlan::always(*fault).of(KEY);
        let proxy = Proxy::start(place.server(), plan);
        let store = || place.through(&proxy, STORE, &options(*fault).retries(2));
        let read = block_on(contents(&store(), &files)).unwrap_err();
        let response = async {
            let dataset = Dataset::open(store()).await?;
            responses(&dataset, place.lists()).await
        };
        let response = block_on(response).unwrap_err();
        let errors: [&(dyn core::error::Error + 'static); 2] = [&read, &response];
        for error in errors {
            let below = of_store(error);
            assert!(is_expected(below), "{place:?} {fault:?}: {error:?}");
            assert_eq!(below.key().as_str(), KEY, "{place:?} {fault:?}");
            assert!(below.to_string().starts_with(KEY), "{below}");
        }
        let others: Vec<ListedFile> = files.iter().filter(|f| f.name != KEY).cloned().collect();
        let reads = others.iter().map(|file| {
            let key = Key::parse(&file.name).unwrap();
            zvf_store::Read::full(key)
        });
        let read = block_on(store().read(&reads.collect::<Vec<_>>()));
        let sizes = read.unwrap().into_iter().map(|bytes| bytes.unwrap().len());
        let want = others.iter().map(|f| usize::try_from(f.size).unwrap());
        assert!(sizes.eq(want), "{place:?} {fault:?}");
        // Bounded: the first response and the retries of each kind of request.
        assert!(proxy.faults() <= 24, "{fault:?}: {} times", proxy.faults());
    }
}

/// Permanent faults of listings.
fn permanent_list_faults(place: Place) {
    let lists = match place {
        Place::S3 | Place::Gcs => "list-type=2",
        Place::Azure => "comp=list",
        Place::Http => return,
    };
    for (fault, throttled) in [
        (ProxyFault::Status(503), true),
        (ProxyFault::Status(500), false),
        (ProxyFault::Hangup, false),
        (ProxyFault::Cut, false),
        (ProxyFault::Stall, false),
    ] {
        let proxy = Proxy::start(place.server(), FaultPlan::always(fault).of(lists));
        let store = place.through(&proxy, STORE, &options(fault).retries(2));
        let counted = async { Dataset::open(store).await?.info().await };
        let error = block_on(counted).unwrap_err();
        let Some(error) = error.cause::<ListError>() else {
            panic!("{place:?} {fault:?}: {error:?}")
        };
        assert!(error.is_transient(), "{place:?} {fault:?}: {error:?}");
        let is = matches!(error, ListError::Throttled { .. });
        assert_eq!(is, throttled, "{place:?} {fault:?}: {error:?}");
    }
}

/// A whole object is cut in half while the server declares it complete. Only its content can reveal
/// that, and does for every object that is read as a whole.
fn truncated_objects(place: Place) -> usize {
    if place == Place::Gcs {
        return 0;
    }
    let mut detected = 0;
    for file in files() {
        let plan = FaultPlan::always(ProxyFault::Shrunk).of(&file.name);
        let proxy = Proxy::start(place.server(), plan);
        let store = place.through(&proxy, STORE, &options(ProxyFault::Shrunk));
        let response = async {
            let dataset = Dataset::open(store).await?;
            responses(&dataset, place.lists()).await
        };
        let response = block_on(response);
        if proxy.faults() == 0 {
            response.unwrap();
            continue;
        }
        let error = response.unwrap_err().to_string();
        let (node, _) = file.name.split_once("/c/").unwrap_or((&file.name, ""));
        assert!(error.starts_with(node), "{}: {error}", file.name);
        detected += 1;
    }
    assert!(detected > 5, "{detected} objects are read whole");
    detected
}

/// The Google client reads the same server through the same code as the S3 client, so one fault of
/// each category is enough.
fn is_relevant(place: Place, plan: &FaultPlan) -> bool {
    let few = [
        ProxyFault::Status(503),
        ProxyFault::Cut,
        ProxyFault::Stall,
        ProxyFault::Short,
        ProxyFault::Elsewhere,
        ProxyFault::Whole,
    ];
    place != Place::Gcs || plan.times < usize::MAX && few.contains(&plan.fault)
}

fn faults(place: Place) {
    let all: Vec<FaultPlan> = [
        FaultPlan::times(ProxyFault::Status(503), 2),
        FaultPlan::times(ProxyFault::Status(429), 2),
        FaultPlan::once(ProxyFault::Status(500)),
        FaultPlan::once(ProxyFault::Hangup),
        FaultPlan::once(ProxyFault::Cut),
        FaultPlan::always(ProxyFault::Late(Duration::from_millis(10))),
        // These take two seconds each, so they apply to few objects.
        FaultPlan::once(ProxyFault::Stall).of("0/vertices/"),
        FaultPlan::once(ProxyFault::Late(LATE)).of("0/vertex_fragments/"),
        FaultPlan::once(ProxyFault::Short),
        FaultPlan::once(ProxyFault::Elsewhere),
        FaultPlan::once(ProxyFault::Whole),
        FaultPlan::always(ProxyFault::Whole),
    ]
    .into_iter()
    .filter(|plan| is_relevant(place, plan))
    .collect();
    let recovered = transient_faults(place, &all);
    let throttled: ErrorTest = |error| matches!(error, ReadError::Throttled { .. });
    let unavailable: ErrorTest = |error| matches!(error, ReadError::Unavailable { .. });
    let cases = [
        (ProxyFault::Status(503), throttled),
        (ProxyFault::Status(429), throttled),
        (ProxyFault::Status(500), unavailable),
        (ProxyFault::Hangup, unavailable),
        (ProxyFault::Cut, unavailable),
        (ProxyFault::Stall, unavailable),
        (ProxyFault::Late(LATE), unavailable),
        (ProxyFault::Short, unavailable),
        (ProxyFault::Elsewhere, unavailable),
    ];
    permanent_faults(place, &cases);
    permanent_list_faults(place);
    let detected = truncated_objects(place);
    let kinds = all.len();
    let permanent = cases.len();
    report(format_args!(
        "{place:?}: recovered from {recovered} transient faults of {kinds} kinds, reported permanent \
         faults of {permanent} kinds, detected {detected} truncated objects"
    ));
}

#[test]
#[ignore = "needs servers: cargo xtask servers"]
fn faults_of_an_s3_bucket_are_overcome_or_reported() {
    faults(Place::S3);
}

#[test]
#[ignore = "needs servers: cargo xtask servers"]
fn faults_of_an_azure_container_are_overcome_or_reported() {
    faults(Place::Azure);
}

#[test]
#[ignore = "needs servers: cargo xtask servers"]
fn faults_of_the_gcs_client_are_overcome_or_reported() {
    faults(Place::Gcs);
}

#[test]
#[ignore = "needs servers: cargo xtask servers"]
fn faults_of_a_web_server_are_overcome_or_reported() {
    faults(Place::Http);
}
