//! Data that ships inside the binary: `path = 'sample:flights'`.

/// Departures out of New York, 1 to 15 January 2013; CC0, source: US Bureau of Transportation Statistics.
const FLIGHTS: &[u8] = include_bytes!("../../catalog/samples/flights_2013_01a.csv");

/// The sample of this name.
pub fn open(name: &str) -> Option<&'static [u8]> {
    match name {
        "flights" => Some(FLIGHTS),
        _ => None,
    }
}
