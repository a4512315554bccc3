package probe

import "time"

// Memory is what a check leaves for the next one of the same endpoint: it comes back in the Result and goes in again with
// the Target. The zero Memory is that of an endpoint never probed. It is kept as JSON in this shape.
type Memory struct {
	Head      *Head      `json:"head,omitempty"`      // the newest head of a chain node
	Block     BlockPace  `json:"block,omitzero"`      // how fast its chain makes blocks
	Finalized *uint64    `json:"finalized,omitempty"` // the highest final block it told of; nil when it tells of none
	Since     *time.Time `json:"since,omitempty"`     // since when the node says that it is starting; nil when it does not
	Over      int        `json:"over,omitempty"`      // checks in a row that found the head too far behind its peers
	Far       int        `json:"far,omitempty"`       // those in a row that found it so far behind that it is of no use

	// Mute says that an MCP server of the modern era did not answer in it the last time, though it did in another.
	Mute bool `json:"mute,omitempty"`
	// SoundTools names the tool list of an MCP server whose schemas were found sound, and the rules by which: they are not
	// judged again while it stays the same.
	SoundTools string `json:"sound_tools,omitempty"`
}

// Head is the newest block of a chain as one endpoint told of it.
type Head struct {
	Endpoint string        `json:"endpoint,omitempty"` // who told, for words to people; empty: the endpoint itself
	Origin   string        `json:"origin,omitempty"`   // host and port that were asked: several endpoints of one origin are one voice
	Chain    string        `json:"chain,omitempty"`    // the id of the chain, as in Facts.ChainID; heads of other chains are not compared
	Height   uint64        `json:"height"`
	Hash     string        `json:"hash,omitempty"`
	Parent   string        `json:"parent,omitempty"`
	Mark     *Mark         `json:"mark,omitempty"`  // a block below the head, at a height that others tell of, too
	Time     time.Time     `json:"time,omitzero"`   // of the block, by the chain's clock; zero when the chain does not tell
	Asked    time.Time     `json:"asked"`           // when the request was sent
	Seen     time.Time     `json:"seen"`            // when the answer was there
	Since    time.Time     `json:"since,omitzero"`  // when this height was first seen
	Every    time.Duration `json:"every,omitempty"` // how often its endpoint is asked, as seen from one check to the next; zero when that is not known
}

// BlockPace is the measured time between two blocks, a moving average. It says nothing until there are enough samples.
type BlockPace struct {
	Average time.Duration `json:"average,omitempty"`
	Samples int           `json:"samples,omitempty"`
}
