package store

// MaxPublicEntries is how many of its public entries an incident has read at once: a page has room for no more.
const MaxPublicEntries = 100

// EntriesByIncident sorts entries by the incident that they are of, in the order in which they come.
func EntriesByIncident(entries []Entry) map[string][]Entry {
	byIncident := map[string][]Entry{}
	for _, e := range entries {
		byIncident[e.IncidentID] = append(byIncident[e.IncidentID], e)
	}
	return byIncident
}
