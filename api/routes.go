package api

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"
)

// access says who may call a route.
type access int

const (
	public  access = iota // anybody
	session               // somebody who is logged in; others are sent to the login page
	token                 // a bearer token, or the session of the dashboard
)

// route is one line of the table.
type route struct {
	method  string
	path    string
	access  access
	handler echo.HandlerFunc
	page    bool // errors are shown as a page
}

// routes is everything this server answers. A GET answers HEAD as well.
func (s *Server) routes() []route {
	const get, post, patch, del = http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete
	const page = true
	return []route{
		// For programs with a token.
		{get, "/api/v1/endpoints", token, s.listEndpoints, !page},
		{post, "/api/v1/endpoints", token, s.createEndpoint, !page},
		{get, "/api/v1/endpoints/:slug", token, s.getEndpoint, !page},
		{patch, "/api/v1/endpoints/:slug", token, s.patchEndpoint, !page},
		{del, "/api/v1/endpoints/:slug", token, s.deleteEndpoint, !page},
		{post, "/api/v1/endpoints/:slug/check", token, s.checkEndpoint, !page},
		{get, "/api/v1/endpoints/:slug/checks", token, s.listChecks, !page},
		{get, "/api/v1/endpoints/:slug/checks/:id", token, s.getCheck, !page},
		{get, "/api/v1/endpoints/:slug/contracts", token, s.listContracts, !page},
		{get, "/api/v1/endpoints/:slug/contracts/:id", token, s.getContract, !page},
		{get, "/api/v1/endpoints/:slug/events", token, s.listEvents, !page},
		{get, "/api/v1/endpoints/:slug/uptime", token, s.getUptime, !page},
		{get, "/api/v1/endpoints/:slug/objectives", token, s.listObjectives, !page},
		{post, "/api/v1/check", token, s.tryTarget, !page},
		{get, "/api/v1/incidents", token, s.listIncidents, !page},
		{post, "/api/v1/incidents", token, s.postIncident, !page},
		{get, "/api/v1/incidents/:id", token, s.getIncident, !page},
		{post, "/api/v1/incidents/:id/acts", token, s.postAct, !page},
		{get, "/api/v1/maintenance", token, s.listMaintenance, !page},
		{post, "/api/v1/maintenance", token, s.postMaintenance, !page},
		{get, "/api/v1/maintenance/:id", token, s.getMaintenance, !page},
		{patch, "/api/v1/maintenance/:id", token, s.patchMaintenance, !page},
		{del, "/api/v1/maintenance/:id", token, s.deleteMaintenance, !page},
		{get, "/api/v1/channels", token, s.listChannels, !page},
		{post, "/api/v1/channels", token, s.postChannel, !page},
		{post, "/api/v1/channels/preview", token, s.previewTemplate, !page},
		{patch, "/api/v1/channels/:id", token, s.patchChannel, !page},
		{del, "/api/v1/channels/:id", token, s.deleteChannel, !page},
		{post, "/api/v1/channels/:id/test", token, s.testChannel, !page},
		{get, "/api/v1/channels/:id/deliveries", token, s.listDeliveries, !page},
		{post, "/api/v1/notices/:id/resend", token, s.resendNotice, !page},
		{get, "/api/v1/subscriptions", token, s.listSubscriptions, !page},
		{post, "/api/v1/subscriptions", token, s.postSubscription, !page},
		{del, "/api/v1/subscriptions/:id", token, s.deleteSubscription, !page},

		// For everybody's programs.
		{get, "/api/v1/status", public, s.getStatus, !page},
		{get, "/api/v1/openapi.yaml", public, s.getOpenAPI, !page},
		{get, "/webhook.schema.json", public, s.getWebhookSchema, !page},
		{get, "/api/v2/summary.json", public, s.statuspageSummary, !page},
		{get, "/api/v2/status.json", public, s.statuspageStatus, !page},
		{get, "/api/v2/components.json", public, s.statuspageComponents, !page},
		{get, "/api/v2/incidents.json", public, s.statuspageIncidents, !page},
		{get, feedPath, public, s.atomFeed, !page},
		{get, jsonFeedPath, public, s.jsonFeed, !page},
		{get, "/badge/:slug/status.svg", public, s.statusBadge, !page},
		{get, "/badge/:slug/status.json", public, s.statusBadge, !page},
		{get, "/badge/:slug/uptime.svg", public, s.uptimeBadge, !page},
		{get, "/badge/:slug/uptime.json", public, s.uptimeBadge, !page},
		{get, "/badge/:slug/latency.svg", public, s.latencyBadge, !page},
		{get, "/badge/:slug/latency.json", public, s.latencyBadge, !page},
		{get, "/badge/:slug/slo.svg", public, s.objectiveBadge, !page},
		{get, "/badge/:slug/slo.json", public, s.objectiveBadge, !page},
		{post, slackPaths[0], public, s.slackAction, !page},
		{post, slackPaths[1], public, s.slackCommand, !page},
		{get, "/healthz", public, s.healthz, !page},
		{get, "/readyz", public, s.readyz, !page},
		{get, "/metrics", public, s.getMetrics, !page},

		// For everybody's eyes.
		{get, "/status", public, s.pageStatus, page},
		{get, "/status/:slug", public, s.pageStatusEndpoint, page},
		{get, subscribePath, public, s.pageSubscribe, page},
		{post, subscribePath, public, s.doSubscribe, page},
		{get, confirmPath, public, s.withToken(s.pageConfirm), page},
		{post, confirmPath, public, s.doConfirm, page},
		{get, managePath, public, s.withToken(s.pageManage), page},
		{post, managePath, public, s.doManage, page},
		{get, unsubscribePath, public, s.withToken(s.pageUnsubscribe), page},
		{post, unsubscribePath, public, s.doUnsubscribe, page},
		{get, "/static/*", public, s.static, page},
		{get, "/setup", public, s.pageSetup, page},
		{post, "/setup", public, s.doSetup, page},
		{get, "/login", public, s.pageLogin, page},
		{post, "/login", public, s.doLogin, page},

		// For those who are logged in.
		{post, "/logout", session, s.doLogout, page},
		{get, "/", session, s.pageOverview, page},
		{get, "/endpoints/new", session, s.pageRegister, page},
		{post, "/endpoints/new", session, s.doRegister, page},
		{get, "/endpoints/:slug", session, s.pageEndpoint, page},
		{post, "/endpoints/:slug", session, s.doEndpoint, page},
		{get, "/endpoints/:slug/edit", session, s.pageEdit, page},
		{post, "/endpoints/:slug/edit", session, s.doEdit, page},
		{get, "/endpoints/:slug/checks/:id", session, s.pageCheck, page},
		{get, "/incidents", session, s.pageIncidents, page},
		{get, "/incidents/new", session, s.pageRaise, page},
		{post, "/incidents/new", session, s.doRaise, page},
		{get, "/incidents/:id", session, s.pageIncident, page},
		{post, "/incidents/:id", session, s.doIncident, page},
		{get, "/maintenance", session, s.pageMaintenance, page},
		{get, "/maintenance/new", session, s.pagePlan, page},
		{post, "/maintenance/new", session, s.doPlan, page},
		{get, "/maintenance/:id", session, s.pagePlanned, page},
		{post, "/maintenance/:id", session, s.doPlanned, page},
		{get, "/subscriptions", session, s.pageSubscriptions, page},
		{post, "/subscriptions", session, s.doSubscriptions, page},
		{get, "/channels", session, s.pageChannels, page},
		{post, "/channels", session, s.doChannels, page},
		{get, "/channels/:id", session, s.pageChannel, page},
		{post, "/channels/:id", session, s.doChannel, page},
	}
}

// install makes the table answer. Around every handler:
//
//	prompt (deadline) → observe (metrics, log) → recovered → secured (headers) → bounded (body) → legible (path) → sameOrigin
//	                       │                                                → allowed (access) → handler
//	                       └─ an error of any of them becomes an answer in fail
func (s *Server) install() {
	s.echo.Use(s.prompt, s.observe, s.recovered, s.secured, s.bounded, s.legible, s.sameOrigin)
	for _, r := range s.routes() {
		s.pages[r.path] = r.page
		handler := r.handler
		if r.access != public && !safe(r.method) {
			handler = s.changing(handler)
		}
		handler = s.allowed(r.access, handler)
		s.echo.Add(r.method, r.path, handler)
		if r.method == http.MethodGet {
			s.echo.Add(http.MethodHead, r.path, handler)
		}
	}
}

// changing has the public told of what a handler changes. Strangers change nothing that it is told of.
func (s *Server) changing(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		defer s.kept.forget()
		return next(c)
	}
}

// allowed lets through whom a route is for.
func (s *Server) allowed(a access, next echo.HandlerFunc) echo.HandlerFunc {
	switch a {
	case public:
		return next
	case session:
		return s.wantSession(next)
	default:
		return s.wantToken(next)
	}
}

// safe reports whether a method promises to change nothing.
func safe(method string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, method)
}
