# Reference values for tests/estimators/test_reference.py: fits of classic tables by lme4 and
# metafor. Run in this folder: Rscript lme4.R; it writes lme4.json. Columns of the fixed effects are
# in the order of R's model matrix, which the tests build by hand.
suppressPackageStartupMessages({
  library(lme4)
  library(metafor)
  library(jsonlite)
})
data(Orthodont, ergoStool, Machines, Oats, package = "nlme")

tight <- lmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-10, maxfun = 1e5),
                     calc.derivs = FALSE, check.conv.singular = "ignore")

one <- function(formula, data, reml, weights) {
  data$w_ <- weights
  fit <- lmer(formula, data, REML = reml, weights = w_, control = tight)
  cov <- VarCorr(fit)[[1]]
  list(mean = unname(fixef(fit)), mean_sd = unname(sqrt(diag(as.matrix(vcov(fit))))),
       sd = unname(attr(cov, "stddev")), correlation = unname(attr(cov, "correlation")),
       noise_sd = sigma(fit), log_likelihood = as.numeric(logLik(fit)))
}

fitted <- function(formula, data, weights = rep(1, nrow(data))) {
  fixed <- names(fixef(lmer(formula, data, control = tight)))
  list(formula = deparse1(formula), fixed = fixed,
       reml = one(formula, data, TRUE, weights), ml = one(formula, data, FALSE, weights))
}

# metafor's restricted likelihood has log|X'X| / 2 added
of_rma <- function(yi, vi, x, method) {
  tight <- list(threshold = 1e-12, maxiter = 1000)
  fit <- if (is.null(x)) rma(yi, vi, method = method, control = tight)
         else rma(yi, vi, mods = x, method = method, control = tight)
  extra <- if (method == "REML") 0.5 * as.numeric(determinant(crossprod(fit$X))$modulus) else 0
  list(mean = as.numeric(fit$beta), mean_sd = fit$se, sd = sqrt(fit$tau2),
       correlation = matrix(1), noise_sd = 1, log_likelihood = as.numeric(logLik(fit)) - extra)
}

combined <- function(formula, yi, vi, x = NULL) {
  fixed <- if (is.null(x)) "intrcpt" else c("intrcpt", "x")
  list(formula = formula, fixed = fixed, yi = yi, vi = vi, x = x,
       reml = of_rma(yi, vi, x, "REML"), ml = of_rma(yi, vi, x, "ML"))
}

cake$batch <- interaction(cake$recipe, cake$replicate)
bcg <- escalc(measure = "RR", ai = tpos, bi = tneg, ci = cpos, di = cneg, data = dat.bcg)
yi <- as.numeric(bcg$yi)
vi <- as.numeric(bcg$vi)
schools <- c(28, 8, -3, 7, -1, 1, 18, 12)
errors <- c(15, 10, 16, 11, 9, 11, 10, 18)

found <- list(
  sleepstudy = fitted(Reaction ~ Days + (Days | Subject), sleepstudy),
  sleepstudy_same_slope = fitted(Reaction ~ Days + (1 | Subject), sleepstudy),
  sleepstudy_weights = fitted(Reaction ~ Days + (Days | Subject), sleepstudy,
                              1 / (1 + sleepstudy$Days)),
  dyestuff = fitted(Yield ~ 1 + (1 | Batch), Dyestuff),
  dyestuff2 = fitted(Yield ~ 1 + (1 | Batch), Dyestuff2),
  pastes = fitted(strength ~ 1 + (1 | sample), Pastes),
  penicillin = fitted(diameter ~ 1 + (1 | plate), Penicillin),
  orthodont = fitted(distance ~ age * Sex + (age | Subject),
                     transform(as.data.frame(Orthodont), Subject = as.character(Subject))),
  ergostool = fitted(effort ~ Type + (1 | Subject), as.data.frame(ergoStool)),
  machines = fitted(score ~ Machine + (Machine | Worker), as.data.frame(Machines)),
  oats = fitted(yield ~ nitro + Variety + (1 | Block), as.data.frame(Oats)),
  cake = fitted(angle ~ recipe * temp + (1 | batch), cake),
  chickweight = fitted(weight ~ Time * Diet + (Time | Chick), as.data.frame(ChickWeight)),
  bcg = combined("yi ~ 1", yi, vi),
  bcg_ablat = combined("yi ~ ablat", yi, vi, bcg$ablat),
  eight_schools = combined("yi ~ 1", schools, errors^2)
)
versions <- list(R = as.character(getRversion()), lme4 = as.character(packageVersion("lme4")),
                 metafor = as.character(packageVersion("metafor")))
write_json(list(versions = versions, fits = found), "lme4.json", digits = 15, auto_unbox = TRUE,
           null = "null", pretty = FALSE)
