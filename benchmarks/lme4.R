# REML by lme4 of the table whose path is given; prints its seconds and its log-likelihood.
suppressPackageStartupMessages(library(lme4))
table <- read.csv(commandArgs(trailingOnly = TRUE)[1])
took <- system.time(fit <- lmer(y ~ 0 + x0 + x1 + x2 + (0 + x0 + x1 + x2 | task), table, REML = TRUE))
cat(sprintf("%.6f %.9f %s", took[["elapsed"]], as.numeric(logLik(fit)), packageVersion("lme4")))
