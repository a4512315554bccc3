package api

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/store"
)

// Who may call a route: the least of the roles that may, or public. What is a page takes a session, and who has none is sent to
// the login page; what is not takes a bearer token or a session.
const (
	public store.Role = "" // anybody
	viewer            = store.RoleViewer
	editor            = store.RoleEditor
	admin             = store.RoleAdmin
)

// route is one line of the table.
type route struct {
	method  string
	path    string
	access  store.Role
	handler echo.HandlerFunc
	page    bool // errors are shown as a page
}

// routes is everything this server answers, each with who may call it. A GET answers HEAD as well.
func (s *Server) routes() []route {
	const get, post, patch, del = http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete
	const page = true
	return []route{
		// For programs with a token.
		{get, "/api/v1/endpoints", viewer, s.listEndpoints, !page},
		{post, "/api/v1/endpoints", editor, s.createEndpoint, !page},
		{get, "/api/v1/endpoints/:slug", viewer, s.getEndpoint, !page},
		{patch, "/api/v1/endpoints/:slug", editor, s.patchEndpoint, !page},
		{del, "/api/v1/endpoints/:slug", editor, s.deleteEndpoint, !page},
		{post, "/api/v1/endpoints/:slug/check", editor, s.checkEndpoint, !page},
		{get, "/api/v1/endpoints/:slug/checks", viewer, s.listChecks, !page},
		{get, "/api/v1/endpoints/:slug/checks/:id", viewer, s.getCheck, !page},
		{get, "/api/v1/endpoints/:slug/contracts", viewer, s.listContracts, !page},
		{get, "/api/v1/endpoints/:slug/contracts/:id", viewer, s.getContract, !page},
		{get, "/api/v1/endpoints/:slug/events", viewer, s.listEvents, !page},
		{get, "/api/v1/endpoints/:slug/uptime", viewer, s.getUptime, !page},
		{get, "/api/v1/endpoints/:slug/objectives", viewer, s.listObjectives, !page},
		{post, "/api/v1/check", editor, s.tryTarget, !page},
		{get, "/api/v1/incidents", viewer, s.listIncidents, !page},
		{post, "/api/v1/incidents", editor, s.postIncident, !page},
		{get, "/api/v1/incidents/:id", viewer, s.getIncident, !page},
		{post, "/api/v1/incidents/:id/acts", editor, s.postAct, !page},
		{get, "/api/v1/maintenance", viewer, s.listMaintenance, !page},
		{post, "/api/v1/maintenance", editor, s.postMaintenance, !page},
		{get, "/api/v1/maintenance/:id", viewer, s.getMaintenance, !page},
		{patch, "/api/v1/maintenance/:id", editor, s.patchMaintenance, !page},
		{del, "/api/v1/maintenance/:id", editor, s.deleteMaintenance, !page},
		{get, "/api/v1/pages", viewer, s.listStatusPages, !page},
		{post, "/api/v1/pages", editor, s.postStatusPage, !page},
		{get, "/api/v1/pages/:slug", viewer, s.getStatusPage, !page},
		{patch, "/api/v1/pages/:slug", editor, s.patchStatusPage, !page},
		{del, "/api/v1/pages/:slug", editor, s.deleteStatusPage, !page},
		{post, "/api/v1/pages/:slug/check", editor, s.checkStatusPage, !page},
		{get, "/api/v1/channels", viewer, s.listChannels, !page},
		{post, "/api/v1/channels", editor, s.postChannel, !page},
		{post, "/api/v1/channels/preview", editor, s.previewTemplate, !page},
		{patch, "/api/v1/channels/:id", editor, s.patchChannel, !page},
		{del, "/api/v1/channels/:id", editor, s.deleteChannel, !page},
		{post, "/api/v1/channels/:id/test", editor, s.testChannel, !page},
		{get, "/api/v1/channels/:id/deliveries", viewer, s.listDeliveries, !page},
		{post, "/api/v1/notices/:id/resend", editor, s.resendNotice, !page},
		{get, "/api/v1/subscriptions", viewer, s.listSubscriptions, !page},
		{post, "/api/v1/subscriptions", viewer, s.postSubscription, !page},
		{del, "/api/v1/subscriptions/:id", viewer, s.deleteSubscription, !page},
		{get, "/api/v1/members", admin, s.listMembers, !page},
		{patch, "/api/v1/members/:id", admin, s.patchMember, !page},
		{del, "/api/v1/members/:id", admin, s.deleteMember, !page},
		{get, "/api/v1/invitations", admin, s.listInvitations, !page},
		{post, "/api/v1/invitations", admin, s.postInvitation, !page},
		{del, "/api/v1/invitations/:id", admin, s.deleteInvitation, !page},
		{get, "/api/v1/tokens", admin, s.listTokens, !page},
		{post, "/api/v1/tokens", admin, s.postToken, !page},
		{del, "/api/v1/tokens/:id", admin, s.deleteToken, !page},
		{get, "/api/v1/audit", admin, s.listAudit, !page},

		// For everybody's programs.
		{get, "/api/v1/status", public, s.getStatus, !page},
		{get, "/api/v1/openapi.yaml", public, s.getOpenAPI, !page},
		{get, "/webhook.schema.json", public, s.getWebhookSchema, !page},
		{get, "/api/v2/summary.json", public, s.statuspageSummary, !page},
		{get, "/api/v2/status.json", public, s.statuspageStatus, !page},
		{get, "/api/v2/components.json", public, s.statuspageComponents, !page},
		{get, "/api/v2/incidents.json", public, s.statuspageIncidents, !page},
		{get, feedPath, public, s.atomFeed, !page},
		{get, "/llms.txt", public, s.llms, !page},
		{get, "/robots.txt", public, s.robots, !page},
		{get, "/p/:slug/feed.atom", public, s.sited(s.atomFeed), !page},
		{get, "/p/:slug/feed.json", public, s.sited(s.jsonFeed), !page},
		{get, "/p/:slug/api/v2/summary.json", public, s.sited(s.statuspageSummary), !page},
		{get, "/p/:slug/api/v2/status.json", public, s.sited(s.statuspageStatus), !page},
		{get, "/p/:slug/api/v2/components.json", public, s.sited(s.statuspageComponents), !page},
		{get, "/p/:slug/api/v2/incidents.json", public, s.sited(s.statuspageIncidents), !page},
		{get, "/p/:slug/llms.txt", public, s.sited(s.llms), !page},
		{get, "/p/:slug/robots.txt", public, s.siteRobots, !page},
		{get, "/p/:slug/logo", public, s.sited(s.siteLogo), !page},
		{get, "/p/:slug/accent.css", public, s.sited(s.siteAccent), !page},
		{get, publicEventsPath, public, s.publicEvents, !page},
		{get, siteEventsPath, public, s.sited(s.publicEvents), !page},
		{get, eventsPath, viewer, s.liveEvents, !page},
		{get, jsonFeedPath, public, s.jsonFeed, !page},
		{get, badgePath + "status.svg", public, s.badge, !page},
		{get, badgePath + "status.json", public, s.badge, !page},
		{get, badgePath + "uptime.svg", public, s.badge, !page},
		{get, badgePath + "uptime.json", public, s.badge, !page},
		{get, badgePath + "latency.svg", public, s.badge, !page},
		{get, badgePath + "latency.json", public, s.badge, !page},
		{get, badgePath + "slo.svg", public, s.badge, !page},
		{get, badgePath + "slo.json", public, s.badge, !page},
		{get, badgePath + "protocol.svg", public, s.badge, !page},
		{get, badgePath + "protocol.json", public, s.badge, !page},
		{get, badgePath + "tools.svg", public, s.badge, !page},
		{get, badgePath + "tools.json", public, s.badge, !page},
		{get, badgePath + "height.svg", public, s.badge, !page},
		{get, badgePath + "height.json", public, s.badge, !page},
		{post, slackPaths[0], public, s.slackAction, !page},
		{post, slackPaths[1], public, s.slackCommand, !page},
		{get, "/healthz", public, s.healthz, !page},
		{get, "/readyz", public, s.readyz, !page},
		{get, "/metrics", public, s.getMetrics, !page},

		// For everybody's eyes.
		{get, "/status", public, s.pageStatus, page},
		{get, "/status/:slug", public, s.pageStatusEndpoint, page},
		{get, "/p/:slug", public, s.sited(s.pageStatus), page},
		{get, "/p/:slug/service/:id", public, s.sited(s.pageSiteEndpoint), page},
		{get, "/p/:slug/subscribe", public, s.sited(s.pageSiteSubscribe), page},
		{post, "/p/:slug/subscribe", public, s.sited(s.doSubscribe), page},
		{get, "/p/:slug/confirm", public, s.siteFound(s.withToken(s.pageConfirm)), page},
		{post, "/p/:slug/confirm", public, s.siteFound(s.doConfirm), page},
		{get, "/p/:slug/subscription", public, s.siteFound(s.withToken(s.pageManage)), page},
		{post, "/p/:slug/subscription", public, s.siteFound(s.doManage), page},
		{get, "/p/:slug/unsubscribe", public, s.siteFound(s.withToken(s.pageUnsubscribe)), page},
		{post, "/p/:slug/unsubscribe", public, s.siteFound(s.doUnsubscribe), page},
		{post, "/p/:slug/password", public, s.doSitePassword, page},
		{post, "/p/:slug/preferences", public, s.doPreferences, page},
		{get, "/status/subscribe", public, s.pageSubscribe, page},
		{post, "/status/subscribe", public, s.doSubscribe, page},
		{get, "/status/confirm", public, s.withToken(s.pageConfirm), page},
		{post, "/status/confirm", public, s.doConfirm, page},
		{get, "/status/subscription", public, s.withToken(s.pageManage), page},
		{post, "/status/subscription", public, s.doManage, page},
		{get, "/status/unsubscribe", public, s.withToken(s.pageUnsubscribe), page},
		{post, "/status/unsubscribe", public, s.doUnsubscribe, page},
		{get, "/static/*", public, s.static, page},
		{get, faviconPath, public, s.favicon, page},
		{get, "/setup", public, s.pageSetup, page},
		{post, "/setup", public, s.doSetup, page},
		{get, "/login", public, s.pageLogin, page},
		{post, "/login", public, s.doLogin, page},
		{get, "/login/code", public, s.pageCode, page},
		{post, "/login/code", public, s.doCode, page},
		{get, oidcPath, public, s.startOIDC, page},
		{get, oidcCallback, public, s.endOIDC, page},
		{get, "/join", public, s.pageJoin, page},
		{post, "/join", public, s.doJoin, page},
		{post, "/preferences", public, s.doPreferences, page},

		// For those who are logged in.
		{post, "/logout", viewer, s.doLogout, page},
		{get, "/", viewer, s.pageOverview, page},
		{get, "/endpoints", viewer, s.pageEndpoints, page},
		{post, "/endpoints", editor, s.doBulk, page},
		{get, "/locations", viewer, s.pageLocations, page},
		{get, "/endpoints/new", editor, s.pageRegister, page},
		{post, "/endpoints/new", editor, s.doRegister, page},
		{get, "/endpoints/:slug", viewer, s.pageEndpoint, page},
		{post, "/endpoints/:slug", editor, s.doEndpoint, page},
		{get, "/endpoints/:slug/edit", editor, s.pageEdit, page},
		{post, "/endpoints/:slug/edit", editor, s.doEdit, page},
		{get, "/endpoints/:slug/checks/:id", viewer, s.pageCheck, page},
		{get, "/endpoints/:slug/badges", viewer, s.pageBadges, page},
		{get, "/endpoints/:slug/contracts", viewer, s.pageContracts, page},
		{get, "/endpoints/:slug/contracts/:id", viewer, s.pageContract, page},
		{get, "/incidents", viewer, s.pageIncidents, page},
		{get, "/incidents/new", editor, s.pageRaise, page},
		{post, "/incidents/new", editor, s.doRaise, page},
		{get, "/incidents/:id", viewer, s.pageIncident, page},
		{post, "/incidents/:id", editor, s.doIncident, page},
		{get, "/maintenance", viewer, s.pageMaintenance, page},
		{get, "/maintenance/new", editor, s.pagePlan, page},
		{post, "/maintenance/new", editor, s.doPlan, page},
		{get, "/maintenance/:id", viewer, s.pagePlanned, page},
		{post, "/maintenance/:id", editor, s.doPlanned, page},
		{get, "/pages", viewer, s.pagePages, page},
		{get, "/pages/new", editor, s.pageNewPage, page},
		{post, "/pages/new", editor, s.doNewPage, page},
		{get, "/pages/:slug", viewer, s.pagePage, page},
		{post, "/pages/:slug", editor, s.doPage, page},
		{get, "/subscriptions", viewer, s.pageSubscriptions, page},
		{post, "/subscriptions", viewer, s.doSubscriptions, page},
		{get, "/channels", viewer, s.pageChannels, page},
		{post, "/channels", editor, s.doChannels, page},
		{get, "/channels/:id", viewer, s.pageChannel, page},
		{post, "/channels/:id", editor, s.doChannel, page},
		{get, "/account", viewer, s.pageAccount, page},
		{post, "/account", viewer, s.doAccount, page},
		{get, "/members", admin, s.pageMembers, page},
		{post, "/members", admin, s.doMembers, page},
		{get, "/tokens", admin, s.pageTokens, page},
		{post, "/tokens", admin, s.doTokens, page},
		{get, "/audit", admin, s.pageAudit, page},
		{get, "/settings", admin, s.pageSettings, page},
	}
}

// install makes the table answer. Around every handler:
//
//	prompt (deadline) → observe (metrics, log) → recovered → secured (headers) → bounded (body) → legible (path) → sameOrigin
//	                       │                                                → allowed (access) → handler
//	                       └─ an error of any of them becomes an answer in fail
func (s *Server) install() {
	s.echo.Pre(s.hosted)
	s.echo.Use(s.prompt, s.observe, s.recovered, s.secured, s.bounded, s.legible, s.sameOrigin)
	for _, r := range s.routes() {
		s.pages[r.path] = r.page
		handler := s.allowed(r)
		s.echo.Add(r.method, r.path, handler)
		if r.method == http.MethodGet {
			s.echo.Add(http.MethodHead, r.path, handler)
		}
	}
}

// changing has everybody told of what a handler changes. Strangers change nothing that others are told of.
func (s *Server) changing(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		defer s.kept.forget()
		defer s.lines.forget()
		return next(c)
	}
}

// allowed lets through whom a route is for.
func (s *Server) allowed(r route) echo.HandlerFunc {
	handler := r.handler
	if r.access != public && !safe(r.method) {
		handler = s.changing(handler)
	}
	switch {
	case r.access == public:
		return handler
	case r.page:
		return s.wantSession(s.wantRole(r.access, handler))
	default:
		return s.wantToken(s.wantRole(r.access, handler))
	}
}

// safe reports whether a method promises to change nothing.
func safe(method string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, method)
}
